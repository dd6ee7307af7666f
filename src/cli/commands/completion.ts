import type { Argument, Command, Option } from 'commander'
import { parseChoice } from '../../config/option-values.js'
import { namedStores, shownStore } from '../../config/resolve.js'
import { readSettings } from '../../config/settings-file.js'
import { writeAnswer } from '../../output/output.js'
import { PlantsError } from '../../platform/errors.js'
import { printable, shorten } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import {
  type GlobalOptions,
  isNamed,
  loadCommand,
  OtherFlags,
  type PlantsCommand,
} from '../command.js'
import { topics } from './help.js'

/**
 * bash splits words at "=" and ":": they are joined again, and the inserted text begins after the last of these
 * characters. Typed text is never evaluated.
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

  if [[ $files == any ]]; then compopt -o bashdefault -o default; fi
  return 0
}

complete -F _plants plants
`

/** To be loaded from fpath or sourced. Typed text is never evaluated. */
const zsh = script`#compdef plants
# Completion of plants for zsh: plants completion zsh > "\${fpath[1]}/_plants"

_plants() {
  local program=\${(Q)words[1]} files prefix line meaning
  local -a lines candidates
  integer ret=1
  program=\${program/#\~\//\${HOME-}/}
  program=\${program/#\$HOME\//\${HOME-}/}
  lines=("\${(@f)$("$program" __complete -- "\${(@Q)words[2,CURRENT-1]}" "\${(Q)PREFIX}" 2>/dev/null </dev/null)}")
  if [[ -z $lines[1] ]]; then return 1; fi
  files=\${lines[1]%%$'\t'*} prefix=\${lines[1]#*$'\t'}
  for line in "\${(@)lines[2,-1]}"; do
    meaning=\${\${line#*$'\t'}//\\/\\\\}
    candidates+=("\${\${line%%$'\t'*}//:/\\:}\${meaning:+:$meaning}")
  done
  compset -P "\${(b)prefix}" || true
  if (( $#candidates )); then _describe -V 'plants' candidates && ret=0; fi
  if [[ $files == any ]]; then _files && ret=0; fi
  return ret
}

if [[ \${funcstack[1]-} == _plants ]]; then
  _plants "$@"
elif (( \${+functions[compdef]} )); then
  compdef _plants plants
else
  print -u2 'plants: completion is not initialized in zsh. First run: autoload -U compinit; compinit'
fi
`

/**
 * fish matches, quotes and describes the words itself. It evaluates the last rule first, so the result is available
 * when the rule about files needs it.
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
end

complete -c plants -n 'test "$__plants_files" = any' -F
complete -c plants -f -k -a '(__plants_complete)'
`

/** For a native program, PowerShell proposes files itself where there is no candidate. Typed text is never evaluated. */
const powershell = script`# Completion of plants for PowerShell: plants completion powershell | Out-String | Invoke-Expression

Register-ArgumentCompleter -Native -CommandName plants -ScriptBlock {
    param($word, $line, $cursor)

    $words = @($line.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursor } | ForEach-Object {
        if ($_ -is [System.Management.Automation.Language.StringConstantExpressionAst]) { $_.Value } else { $_.Extent.Text }
    })
    $current = "$word".Trim('"', "'")
    $typed = @(@($words | Select-Object -Skip 1) + $current | ForEach-Object { ".$_" })
    $program = if ($words) { $words[0] } else { 'plants' }
    $lines = @(& $program __complete . @typed 2>$null)
    if (-not $lines) { return }
    $files, $prefix = $lines[0] -split "\`t", 2
    foreach ($candidate in $lines | Select-Object -Skip 1) {
        $name, $meaning = $candidate -split "\`t", 2
        if (-not "$prefix$name".StartsWith($current, [StringComparison]::OrdinalIgnoreCase)) { continue }
        if (-not $meaning) { $meaning = $name }
        [System.Management.Automation.CompletionResult]::new("$prefix$name", $name, 'ParameterValue', $meaning)
    }
    if ($files -eq 'any') { [System.Management.Automation.CompletionCompleters]::CompleteFilename($current) }
}
`

const shells = ['bash', 'zsh', 'fish', 'powershell'] as const

export function defineCompletion(command: PlantsCommand, io: Io): void {
  command
    .description(
      'Print a script with which a shell completes commands, options, their choices, the names of saved stores, and tags and ids of a store on this machine. The script calls plants for the candidates, so it never becomes outdated.',
    )
    .addArgument(
      command
        .createArgument('<shell>', shells.join(', '))
        .choices(shells)
        .argParser((text) => parseChoice('shell', text, shells)),
    )
    .addNotes(
      'Installation',
      'bash, in ~/.bashrc:',
      '  source <(plants completion bash)',
      'zsh, once, then start a new shell (or source the script in ~/.zshrc, after compinit):',
      `  plants completion zsh > "\${fpath[1]}/_plants"`,
      'fish, once:',
      '  plants completion fish > ~/.config/fish/completions/plants.fish',
      'PowerShell, in the file that $PROFILE names:',
      '  plants completion powershell | Out-String | Invoke-Expression',
      'For an alias of plants, such as p:',
      '  bash: complete -F _plants p   zsh: compdef _plants p   fish: complete -c p -w plants',
    )
    .addExamples(
      'source <(plants completion bash)',
      'plants completion zsh > _plants',
      'plants completion fish > plants.fish',
    )
    .handler((_: object, shell: (typeof shells)[number]) =>
      writeAnswer(io, { bash, zsh, fish, powershell }[shell]),
    )
}

/** A raw template, without the backslash before `${` and a backtick, which TypeScript needs and shells must not see. */
function script({ raw }: TemplateStringsArray): string {
  return raw.join('').replaceAll('\\${', '${').replaceAll('\\`', '`')
}

type Candidate = readonly [word: string, meaning: string]

/** Each shell filters them by the typed text in its own way. */
interface Completions {
  candidates: readonly Candidate[]
  /** The shell offers files, too. */
  files?: boolean
  /** What comes before each candidate in the word, such as `--output=`. */
  prefix?: string
}

/**
 * For the script of a shell, prints a line of `any` or `none` for files, a tab and the prefix, then each candidate, a
 * tab and its meaning.
 *
 * @param words the last one is being typed
 */
export async function printCompletions(program: Command, words: string[], io: Io): Promise<void> {
  const {
    candidates,
    files,
    prefix = '',
  } = await complete(program, words.slice(0, -1), words.at(-1) ?? '', io)
  const lines = [[files ? 'any' : 'none', prefix], ...candidates]
  await writeAnswer(
    io,
    lines.map((fields) => `${fields.map((field) => printable(field, io)).join('\t')}\n`).join(''),
  )
}

async function complete(
  program: Command,
  before: string[],
  text: string,
  io: Io,
): Promise<Completions> {
  let command = program
  const operands: string[] = []
  /** The option whose value is missing. */
  let pending: Option | undefined
  for (const word of before) {
    const below = command.commands.find((each) => isNamed(each, word))
    if (word === '--') return { candidates: [] }
    if (pending) pending = undefined
    else if (word.startsWith('-')) pending = takerOf(command, word)
    else if (below && operands.length === 0) {
      await loadCommand(below, io)
      command = below
    } else operands.push(word)
  }

  if (pending) return valuesOf(pending, text, storeIn(before), io)
  const { flag, value = '' } = /^(?<flag>--[^=]+)=(?<value>.*)$/s.exec(text)?.groups ?? {}
  if (flag !== undefined) {
    const option = command.options.find(
      ({ long, required, optional }) => long === flag && (required || optional),
    )
    return option
      ? { ...(await valuesOf(option, value, storeIn(before), io)), prefix: `${flag}=` }
      : { candidates: [] }
  }
  if (text.startsWith('-')) return { candidates: optionsOf(command) }
  const commands = command.name() === 'help' ? helpWords(program) : commandsOf(command)
  if (commands.length > 0) return { candidates: operands.length === 0 ? commands : [] }
  const { registeredArguments } = command
  const argument =
    registeredArguments[operands.length] ?? registeredArguments.find(({ variadic }) => variadic)
  if (argument) return valuesOf(argument, text, storeIn(before), io)
  return { candidates: text === '' ? optionsOf(command) : [] }
}

/** The option that takes the next word as its value. */
function takerOf({ options }: Command, word: string): Option | undefined {
  return options.find(({ short, long, required }) => required && (short === word || long === word))
}

function optionsOf({ options }: Command): Candidate[] {
  const listed = options.filter((option) => !(option instanceof OtherFlags))
  const all = listed.flatMap(({ long, description }): Candidate[] =>
    long === undefined ? [] : [[long, description]],
  )
  return [...all, ['--help', 'show this help']]
}

function commandsOf({ commands }: Command): Candidate[] {
  return commands.map((each) => [each.name(), each.summary() || each.description()])
}

function helpWords(program: Command): Candidate[] {
  const words = Object.entries(topics).map(([name, { summary }]): Candidate => [name, summary])
  return [...commandsOf(program).filter(([name]) => name !== 'help'), ...words]
}

/** The store that the words name. */
function storeIn(words: string[]): GlobalOptions {
  const named = words.map((word, index) => {
    const isValue = ['-s', '--store'].includes(words[index - 1] ?? '')
    return isValue ? word : /^(?:--store=|-s=?(?=.))(?<store>.*)$/s.exec(word)?.groups?.['store']
  })
  const store = named.findLast((each) => each !== undefined)
  return store === undefined ? {} : { store }
}

/** Completes by the choices of an option or argument, or by the name of its value. */
async function valuesOf(
  of: Option | Argument,
  text: string,
  options: GlobalOptions,
  io: Io,
): Promise<Completions> {
  if (of.argChoices) return { candidates: of.argChoices.map((word) => [word, '']) }
  const isTag = 'long' in of && of.long === '--tag'
  if (isTag || (!('long' in of) && of.name() === 'id')) {
    const { storedWords } = await import('../stored-words.js')
    return { candidates: await storedWords(isTag ? 'tag' : 'id', text, options, io) }
  }
  const name = 'flags' in of ? /<(?<name>\w+)/.exec(of.flags)?.groups?.['name'] : of.name()
  if (name === 'file' || name === 'files' || name === 'path') return { candidates: [], files: true }
  const isAddress = /^\w+:/.test(text) // which fish would replace by a name with the same letters
  if ((name !== 'address' && name !== 'store') || isAddress) return { candidates: [] }
  return {
    candidates: [...(await savedStores(io)), ['local', 'your own store, which is built in']],
    files: true,
  }
}

/** Invalid settings only mean fewer candidates; the next command reports them. */
async function savedStores(io: Io): Promise<Candidate[]> {
  try {
    const { saved } = await readSettings(io)
    const named = namedStores(saved).map(
      async ([name, { address }]) => [name, shorten(await shownStore(address, io))] as const,
    )
    return await Promise.all(named)
  } catch (error) {
    if (error instanceof PlantsError) return []
    throw error
  }
}
