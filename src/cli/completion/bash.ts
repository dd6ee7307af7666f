import { script } from './script.js'

/**
 * What bash runs for a Tab. It takes words apart at "=" and ":", so they are put together again, and what it is to insert
 * begins behind the last of these. Nothing that was typed is evaluated.
 */
export const bash = script`# Completion of plants for bash 4.4 and newer: source <(plants completion bash)

_plants() {
  local IFS=$' \t\n' rest=\${COMP_LINE:0:COMP_POINT} program=\${COMP_WORDS[0]} words=() at piece blank is_target=
  COMPREPLY=()
  for ((at = 0; at <= COMP_CWORD; at++)); do
    blank=\${rest%%[![:space:]]*}
    rest=\${rest#"$blank"}
    piece=\${COMP_WORDS[at]}
    if ((at == COMP_CWORD)); then piece=$rest; fi
    rest=\${rest#"$piece"}
    if [[ $piece == [\<\>]* ]]; then
      is_target=yes
    elif [[ $is_target ]]; then
      if ((at == COMP_CWORD)); then compopt -o bashdefault -o default; return 0; fi
      is_target=
    elif [[ $blank || $at -eq 0 ]]; then
      words+=("$piece")
    else
      words[\${#words[@]}-1]+=$piece
    fi
  done
  words=("\${words[@]//[\"\'\\]/}")

  # An alias is no program; what it stands for is hidden from here.
  if [[ \${BASH_ALIASES[$program]-} ]]; then program=plants; fi
  program=\${program/#\~\//\${HOME-}/}
  program=\${program/#\$HOME\//\${HOME-}/}
  local word=\${words[\${#words[@]}-1]} files prefix line candidate
  local inserted=\${word%"$2"}
  {
    IFS= read -r line || return 0
    files=\${line%%$'\t'*} prefix=\${line#*$'\t'}
    while IFS= read -r line; do
      candidate=$prefix\${line%%$'\t'*}
      if [[ $candidate == "$word"* ]]; then COMPREPLY+=("\${candidate#"$inserted"}"); fi
    done
  } < <("$program" __complete -- "\${words[@]:1}" 2>/dev/null </dev/null)

  case $files in
    none) if [[ \${#COMPREPLY[@]} -eq 1 && \${COMPREPLY[0]} == *. ]]; then compopt -o nospace; fi ;;
    any) compopt -o bashdefault -o default ;;
    *) _plants_files "\${word#"$prefix"}" "$files" ;;
  esac
  return 0
}

# Folders, and files with such endings, beside the words that are offered already.
_plants_files() {
  local path ending is_folder=
  for path in "\${COMPREPLY[@]}"; do
    if [[ -d $path ]]; then is_folder=yes; fi
  done
  if [[ ! $is_folder ]]; then compopt -o filenames; fi
  while IFS= read -r path; do
    if [[ $is_folder ]]; then printf -v path %q "$path"; fi
    COMPREPLY+=("$path")
  done < <(compgen -d -- "$1" || :; for ending in $2; do compgen -f -X "!*.$ending" -- "$1" || :; done)
}

complete -F _plants plants
`
