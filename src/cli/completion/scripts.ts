/**
 * The completion function for bash. bash splits words at "=" and ":", so they are joined again, and the inserted text begins after the last of
 * these characters. Typed text is never evaluated.
 */
const bash = script`# Completion of plants for bash 4.4 and newer: source <(plants completion bash)

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

  # An alias is not a program, and its definition is not available here.
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

# Adds folders, and files with these extensions, to the candidates.
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

/** The completion function for zsh, to be loaded from fpath or sourced. Typed text is never evaluated. */
const zsh = script`#compdef plants
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
  print -u2 'plants: completion is not initialised in zsh. First run: autoload -U compinit; compinit'
fi
`

/**
 * The completion function for fish, which matches, quotes and describes the words itself. fish evaluates the last rule first, so the result is
 * available when the rule about files needs it.
 */
const fish = script`# Completion of plants for fish: plants completion fish | source

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

/**
 * The argument completer for PowerShell. `--next` means an empty last word, because versions before 7.3 drop empty arguments.
 * If nothing is returned, PowerShell completes file names; an empty string prevents that.
 */
const powershell = script`# Completion of plants for PowerShell: plants completion powershell | Out-String | Invoke-Expression

Register-ArgumentCompleter -Native -CommandName plants -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $before = $commandAst.CommandElements | Where-Object { $_.Extent.StartOffset -lt $cursorPosition }
    $program = $commandAst.GetCommandName()
    $words = @($before | Select-Object -Skip 1 | ForEach-Object { "$_".Trim('"', "'") })
    $start = @(if ($wordToComplete -eq '') { '--next' }) + '--'
    $first, $lines = @(& $program __complete @start @words 2>$null)
    if (-not $first) { return }
    $files, $prefix = $first -split '\t', 2
    $results = @(foreach ($line in $lines) {
        $word, $meaning = $line -split '\t', 2
        if (-not "$prefix$word".StartsWith($wordToComplete)) { continue }
        if (-not $meaning) { $meaning = $word }
        [System.Management.Automation.CompletionResult]::new("$prefix$word", $word, 'ParameterValue', $meaning)
    })
    if ($files -ne 'none') {
        $path = $wordToComplete.Substring($prefix.Length)
        $results += @(foreach ($file in [System.Management.Automation.CompletionCompleters]::CompleteFilename($path)) {
            $text = $prefix + $file.CompletionText
            [System.Management.Automation.CompletionResult]::new($text, $file.ListItemText, $file.ResultType, $file.ToolTip)
        })
    }
    if ($results.Count -gt 0) { $results } elseif ($files -eq 'none') { '' }
}
`

export const scripts = { bash, zsh, fish, powershell }

/** A raw template, without the backslash before `${`, which TypeScript needs and shells must not see. */
function script({ raw }: TemplateStringsArray): string {
  return raw.join('').replaceAll('\\${', '${')
}
