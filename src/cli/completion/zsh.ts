import { script } from './script.js'

/** What zsh runs for a Tab, as a file that its completion loads or as a text that is sourced. Nothing that was typed is evaluated. */
export const zsh = script`#compdef plants
# Completion of plants for zsh: plants completion zsh > "\${fpath[1]}/_plants"

_plants() {
  local program=\${(Q)words[1]} files prefix line word
  local -a lines whole begun
  integer ret=1
  program=\${program/#\~\//\${HOME-}/}
  program=\${program/#\$HOME\//\${HOME-}/}
  lines=("\${(@f)$("$program" __complete -- "\${(@Q)words[2,CURRENT-1]}" "\${(Q)PREFIX}" 2>/dev/null </dev/null)}")
  if [[ -z $lines[1] ]]; then return 1; fi
  files=\${lines[1]%%$'\t'*} prefix=\${lines[1]#*$'\t'}
  for line in "\${(@)lines[2,-1]}"; do
    word=\${line%%$'\t'*}
    line=\${line#*$'\t'}
    line=\${line//\\/\\\\}
    line=\${word//:/\\:}\${line:+:$line}
    if [[ $word == *. ]]; then begun+=("$line"); else whole+=("$line"); fi
  done
  compset -P "\${(b)prefix}" || true
  if (( $#whole )); then _describe -V 'plants' whole && ret=0; fi
  if (( $#begun )); then _describe -V 'plants' begun -S '' && ret=0; fi
  case $files in
    none) ;;
    any) _files && ret=0 ;;
    *) _files -g "*.(\${files// /|})(-.)" && ret=0 ;;
  esac
  return ret
}

if [[ \${funcstack[1]-} == _plants ]]; then
  _plants "$@"
elif (( \${+functions[compdef]} )); then
  compdef _plants plants
else
  print -u2 'plants: zsh completes nothing yet. Put this in front: autoload -U compinit; compinit'
fi
`
