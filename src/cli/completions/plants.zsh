#compdef plants
# Completion of plants for zsh. Add these lines to the end of ~/.zshrc:
#   autoload -Uz compinit && compinit
#   source <(plants completion zsh)

_plants() {
  local line meaning
  local -a lines candidates
  lines=("${(@f)$(plants __complete zsh "${(j: :)words[1,CURRENT-1]} $PREFIX" 2>/dev/null </dev/null)}")
  # A colon alone means that no file can follow.
  [[ $lines == : ]] && return 1
  for line in "${(@)lines:#}"; do
    meaning=${${line#*$'\t'}//\\/\\\\}
    candidates+=("${${line%%$'\t'*}//:/\\:}${meaning:+:$meaning}")
  done
  if (( $#candidates )); then
    _describe -V 'plants' candidates
  else
    compset -P '*=' || true
    _files
  fi
}

if [[ ${funcstack[1]-} == _plants ]]; then
  _plants "$@"
elif (( ${+functions[compdef]} )); then
  compdef _plants plants
else
  print -u2 'plants: completion is not initialized in zsh. First run: autoload -U compinit; compinit'
fi
