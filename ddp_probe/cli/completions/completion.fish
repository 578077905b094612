# Completes ddp-probe and python -m ddp_probe in fish. Printed by: python -m ddp_probe completion fish

# The options that take a value in the next word.
set -g __ddp_probe_valued @valued@

# __ddp_probe_in COMMAND [NUMBER]: whether an option or an argument of this command comes next; the argument with this number.
function __ddp_probe_in
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test "$words[2]" = $argv[1]; and not contains -- -- $words; or return 1
    set -q argv[2]; or return 0
    set -l number 1
    set -l taking
    for word in $words[3..-1]
        if set -q taking[1]
            set -e taking
        else if contains -- $word $__ddp_probe_valued
            set taking $word
        else if not string match -q -- '-*' $word
            set number (math $number + 1)
        end
    end
    test $number -eq $argv[2]
end

function __ddp_probe_runs
    set -q DDP_PROBE_DIR; and set -l root $DDP_PROBE_DIR; or set -l root ddp_probe_runs
    for folder in $root/*/
        string match -qr '[[:cntrl:]]|/-[^/]*/$' -- $folder; and continue
        string replace -r '^.*/(.+)/$' '$1' -- $folder
    end
end

# The command line after the two dashes, completed as one of its own.
function __ddp_probe_after_dashes
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words); or return
    set -l rest (string escape -- $words[(math $at + 1)..-1]) (commandline -ct)
    complete -C "$rest"
end

# python -m ddp_probe: the words after it, completed as those of ddp-probe.
function __ddp_probe_module
    set -l words (commandline -opc)
    set -l at (contains -i -- ddp_probe $words); and test $at -gt 2; or return 1
    set -l before $words[(math $at - 1)]
    test $before = -m
end

function __ddp_probe_of_module
    set -l words (commandline -opc)
    set -l at (contains -i -- ddp_probe $words)
    set -l rest ddp-probe (string escape -- $words[(math $at + 1)..-1]) (commandline -ct)
    complete -C "$rest"
end

complete -c ddp-probe -e
complete -c ddp-probe -n 'test (count (commandline -opc)) -eq 1' -f
complete -c ddp-probe -n 'test (count (commandline -opc)) -eq 1' -s h -l help -d 'print the commands'
complete -c ddp-probe -n 'test (count (commandline -opc)) -eq 1' -s V -l version -d 'print the version'
# @commands@
for program in python python3
    complete -c $program -n __ddp_probe_module -fa '(__ddp_probe_of_module)'
end
