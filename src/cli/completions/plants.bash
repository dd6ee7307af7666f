# Completion of plants for bash 4.4 and newer. Add this line to ~/.bashrc:
#   source <(plants completion bash)

_plants() {
  # plants splits the line itself, and prints the words that fit.
  mapfile -t COMPREPLY < <(plants __complete bash "${COMP_LINE:0:COMP_POINT}" 2>/dev/null </dev/null)
  # A colon alone means that no file can follow.
  if [[ ${COMPREPLY[*]} == : ]]; then
    COMPREPLY=()
    compopt +o bashdefault +o default
  fi
}

# Files where there is no candidate.
complete -o bashdefault -o default -F _plants plants
