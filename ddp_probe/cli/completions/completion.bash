# Completes ddp-probe and python -m ddp_probe in bash. Printed by: python -m ddp_probe completion bash

_ddp_probe_commands=@commands@

# What may follow: after COMMAND and a dash, after an OPTION of it, and as its argument with a NUMBER, or any (*).
declare -gA _ddp_probe_offers
_ddp_probe_offers=(
    # @offers@
)

# _ddp_probe_offer KIND [WORD ...]: offer what begins like the current word. If nothing does, bash offers files.
_ddp_probe_offer() {
    local kind=$1 word
    shift
    case $kind in
        folders) compopt -o dirnames +o default +o bashdefault 2>/dev/null ;;
        runs)
            # bash puts a name on the line as it is: one with $(command) in it would be run.
            while IFS= read -r word; do
                word=${word##*/}
                [[ -d ${DDP_PROBE_DIR:-ddp_probe_runs}/$word && $word != -* && $word != *[[:cntrl:]]* ]] || continue
                printf -v word %q "$word"
                set -- "$@" "$word"
            done < <(compgen -d -- "${DDP_PROBE_DIR:-ddp_probe_runs}/" 2>/dev/null)
            ;;
        words | free) compopt +o default +o bashdefault 2>/dev/null ;;
    esac
    for word; do
        [[ ${word,,} == "${cur,,}"* ]] && COMPREPLY+=("$word")
    done
}

# _ddp_probe_rest NUMBER: complete the command line that begins with this word.
_ddp_probe_rest() {
    local offset
    for offset in _comp_command_offset _command_offset; do
        if declare -F $offset >/dev/null; then
            $offset "$1"
            return
        fi
    done
    ((COMP_CWORD > $1)) || COMPREPLY=($(compgen -c -- "$cur"))
}

# _ddp_probe_at NUMBER: complete the current word; the command is the word with this number.
_ddp_probe_at() {
    local IFS=$' \t\n' cur=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[$1]} taking='' count=1 at word
    COMPREPLY=()
    if ((COMP_CWORD == $1)); then
        [[ $cur == -* ]] && _ddp_probe_offer words -h --help -V --version || _ddp_probe_offer words $_ddp_probe_commands
        return 0
    fi
    for ((at = $1 + 1; at < COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]}
        if [[ $word == '=' ]]; then
            continue # bash makes three words of --format=json
        elif [[ -n $taking ]]; then
            taking=''
        elif [[ $word == -- ]]; then
            _ddp_probe_rest $((at + 1))
            return 0
        elif [[ $word == -* ]]; then
            [[ -z ${_ddp_probe_offers[$command $word]-} ]] || taking=$word
        else
            ((++count))
        fi
    done
    [[ $cur == '=' ]] && cur=''
    if [[ -n $taking ]]; then
        _ddp_probe_offer ${_ddp_probe_offers[$command $taking]}
    elif [[ $cur == -* ]]; then
        _ddp_probe_offer ${_ddp_probe_offers[$command -]-words}
    else
        _ddp_probe_offer ${_ddp_probe_offers[$command $count]-${_ddp_probe_offers[$command *]-free}}
    fi
    return 0
}

_ddp_probe() { _ddp_probe_at 1; }

_ddp_probe_python() {
    local at
    for ((at = 1; at < COMP_CWORD; at++)); do
        case ${COMP_WORDS[at]} in
            -m)
                if [[ ${COMP_WORDS[at + 1]} == ddp_probe ]] && ((COMP_CWORD > at + 1)); then
                    _ddp_probe_at $((at + 2))
                    return
                fi
                break
                ;;
            -W | -X) ((++at)) ;; # they take a value
            -*) ;;
            *) break ;;
        esac
    done
    local before=${_ddp_probe_before[${COMP_WORDS[0]##*/}]-}
    [[ -z $before ]] || "$before" "$@"
}

# bash-completion loads the function that completes a program only when it is needed.
_ddp_probe_load() {
    local loader
    for loader in _comp_load _completion_loader; do
        if declare -F $loader >/dev/null; then
            $loader "$1" 2>/dev/null
            return
        fi
    done
}

# Other lines of python stay with the function that completes them.
_ddp_probe_join() {
    local found
    found=$(complete -p "$1" 2>/dev/null)
    if [[ $found =~ \ -F\ ([^ ]+) ]]; then
        [[ ${BASH_REMATCH[1]} == _ddp_probe_python ]] || _ddp_probe_before[$1]=${BASH_REMATCH[1]}
    elif [[ -n $found ]]; then
        return # a list of words, which cannot be called
    fi
    complete -o bashdefault -o default -F _ddp_probe_python "$1"
}

declare -gA _ddp_probe_before
complete -o bashdefault -o default -F _ddp_probe ddp-probe
_ddp_probe_load python
_ddp_probe_load python3
_ddp_probe_join python
_ddp_probe_join python3
