# Completion of plants for fish. Run these commands once:
#   mkdir -p ~/.config/fish/completions
#   plants completion fish > ~/.config/fish/completions/plants.fish

function __plants_complete
    set -g __plants_candidates (plants __complete fish (commandline -cp) 2>/dev/null </dev/null)
    # A colon alone means that no file can follow.
    string match -v : -- $__plants_candidates
end

# Files where there is no candidate, but none that resemble an address. fish evaluates the last rule first.
complete -c plants -n 'not set -q __plants_candidates[1]; and not string match -q "*:*" -- (commandline -ct)' -F
complete -c plants -f -k -a '(__plants_complete)'
