# Completes ddp-probe and python -m ddp_probe in zsh. Printed by: python -m ddp_probe completion zsh

_ddp_probe_runs() {
    local -a runs=(${DDP_PROBE_DIR:-ddp_probe_runs}/*(N-/:t))
    runs=(${runs:#*[[:cntrl:]]*})
    _alternative 'runs:run:compadd -a runs' 'files:file:_files'
}

_ddp_probe() {
    local curcontext=$curcontext context state state_descr line ret=1
    local -A opt_args
    local -a commands=(
        # @commands@
    )
    _arguments -C '(- 1 *)'{-h,--help}'[print the commands]' '(- 1 *)'{-V,--version}'[print the version]' '1: :->command' '*:: :->rest' && ret=0
    case $state in
        command) _describe -t commands command commands && ret=0 ;;
        rest)
            case $words[1] in
                # @rest@
            esac
            ;;
    esac
    return ret
}

# Other lines of python stay with the function that completes them.
_ddp_probe_python() {
    local at=${words[(ie)ddp_probe]}
    if ((at > 2 && at < CURRENT)) && [[ $words[at-1] == -m && -z ${(M)words[2,at-2]:#[^-]*} ]]; then
        words=(ddp-probe "${(@)words[at+1,-1]}")
        ((CURRENT -= at - 1))
        _ddp_probe
    elif [[ -n $_ddp_probe_before[$service] ]]; then
        ${=_ddp_probe_before[$service]}
    elif ((${+functions[_python]})); then
        _python # zsh's own, which completes each program whose name begins with python
    else
        _default
    fi
}

typeset -gA _ddp_probe_before
() {
    local name
    for name in python python3; do
        [[ $_comps[$name] == _ddp_probe_python ]] || _ddp_probe_before[$name]=$_comps[$name]
    done
}
compdef _ddp_probe ddp-probe
compdef _ddp_probe_python python python3
