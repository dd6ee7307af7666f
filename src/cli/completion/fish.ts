import { script } from './script.js'

/**
 * What fish runs for a Tab. It compares, quotes and describes the words itself. Of several rules it tries the last one first,
 * so the answer is there when the rule about files asks for it.
 */
export const fish = script`# Completion of plants for fish: plants completion fish | source

function __plants_complete
    set -g __plants_files none
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program (string replace -r '^(~|\$HOME)/' "$HOME/" -- $words[1])
    type -q $program; or return
    set -l lines ($program __complete -- $words[2..-1] "$current" 2>/dev/null </dev/null)
    set -q lines[1]; or return
    set -l first (string split \t -- $lines[1])
    set __plants_files $first[1]
    for line in $lines[2..-1]
        printf '%s\n' $first[2]$line
    end
    switch $__plants_files
        case none any
        case '*'
            set -l endings (string replace -a ' ' '|\.' -- $__plants_files)
            set -l paths (__fish_complete_path (string replace -- "$first[2]" '' $current))
            for path in (string match -r -- "^[^\t]*(?:/|\.$endings)(?:\t.*)?\$" $paths)
                printf '%s\n' $first[2]$path
            end
    end
end

complete -c plants -n 'test "$__plants_files" = any' -F
complete -c plants -f -k -a '(__plants_complete)'
`
