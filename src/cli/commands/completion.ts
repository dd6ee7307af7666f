import type { Argument, Command, Option } from 'commander'
import { parseChoice } from '../../config/option-values.js'
import { namedStores, shownStore } from '../../config/resolve.js'
import { readSettings } from '../../config/settings-file.js'
import { writeAnswer } from '../../output/output.js'
import { PlantsError } from '../../platform/errors.js'
import { printable, shorten } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { isNamed, type PlantsCommand } from '../command.js'
import bash from '../completions/plants.bash?raw'
import fish from '../completions/plants.fish?raw'
import powershell from '../completions/plants.ps1?raw'
import zsh from '../completions/plants.zsh?raw'
import { topics } from './help.js'

const scripts = { bash, zsh, fish, powershell }
const shells = ['bash', 'zsh', 'fish', 'powershell'] as const

export function defineCompletion(command: PlantsCommand, io: Io): void {
  command
    .description(
      'Print a script with which a shell completes commands, options, their choices and the names of stores. Its first lines say where it belongs. It calls plants for the candidates, so it never becomes outdated.',
    )
    .addArgument(
      command
        .createArgument('<shell>', shells.join(', '))
        .choices(shells)
        .argParser((text) => parseChoice('shell', text, shells)),
    )
    .addExamples(
      'source <(plants completion bash)',
      'plants completion zsh > _plants',
      'plants completion fish > plants.fish',
    )
    .handler((_: object, shell: (typeof shells)[number]) => writeAnswer(io, scripts[shell]))
}

type Candidate = readonly [word: string, meaning: string]

/**
 * For the script of a shell, prints each candidate for the last word of a line, a tab and its meaning. Where there is none,
 * the shell offers files.
 *
 * @param args the name of the shell, and the line up to the cursor
 */
export async function printCompletions(
  [shell, line = '']: readonly string[],
  programOf: (line: readonly string[]) => Promise<Command>,
  io: Io,
): Promise<void> {
  const [, ...words] = wordsIn(line)
  const text = words.pop() ?? ''
  const all = await candidatesFor(text, words, await programOf(words), io)
  const found = all.filter(([word]) => word.startsWith(text))
  // bash ends a word at these characters, and inserts what comes after the last one.
  const from = shell === 'bash' ? text.search(/[^=:]*$/) : 0
  const lines = found.map(([word, meaning]) => {
    const shown = shell === 'bash' ? [word.slice(from)] : [word, meaning]
    return `${shown.map((field) => printable(field, io)).join('\t')}\n`
  })
  await writeAnswer(io, lines.join(''))
}

/** The words of a line, without their quotes; the last one is being typed, and may be empty. */
export function wordsIn(line: string): string[] {
  const word = /(?:[^\s'"\\]|\\.?|'[^']*'?|"(?:[^"\\]|\\.)*"?)+/gs
  const words = Array.from(line.matchAll(word), ([text]) =>
    text.replace(/\\(?<escaped>.)|['"]/gs, '$<escaped>'),
  )
  return /^$|(?<!\\)\s$/.test(line) ? [...words, ''] : words
}

async function candidatesFor(
  text: string,
  before: readonly string[],
  program: Command,
  io: Io,
): Promise<readonly Candidate[]> {
  let command = program
  const operands: string[] = []
  /** The option whose value is missing. */
  let pending: Option | undefined
  for (const word of before) {
    const below = command.commands.find((each) => isNamed(each, word))
    if (word === '--') return []
    if (pending) pending = undefined
    else if (word.startsWith('-')) pending = takerOf(command, word)
    else if (below && operands.length === 0) command = below
    else operands.push(word)
  }

  if (pending) return valuesOf(pending, text, io)
  const [flag = ''] = /^--[^=]+(?==)/.exec(text) ?? []
  if (flag !== '') {
    const option = takerOf(command, flag)
    const values = option ? await valuesOf(option, text.slice(flag.length + 1), io) : []
    return values.map(([word, meaning]) => [`${flag}=${word}`, meaning])
  }
  if (text.startsWith('-')) return optionsOf(command)
  const commands = command.name() === 'help' ? helpWords(program) : commandsOf(command)
  if (commands.length > 0) return operands.length === 0 ? commands : []
  const { registeredArguments } = command
  const argument =
    registeredArguments[operands.length] ?? registeredArguments.find(({ variadic }) => variadic)
  return argument ? valuesOf(argument, text, io) : optionsOf(command)
}

/** The option that takes the next word as its value. */
function takerOf({ options }: Command, word: string): Option | undefined {
  return options.find(({ short, long, required }) => required && (short === word || long === word))
}

function optionsOf({ options }: Command): Candidate[] {
  const longs = options.map(({ long = '', description }): Candidate => [long, description])
  return [...longs, ['--help', 'show this help']]
}

function commandsOf({ commands }: Command): Candidate[] {
  return commands.map((each) => [each.name(), each.summary() || each.description()])
}

function helpWords(program: Command): Candidate[] {
  const words = Object.keys(topics).map((name): Candidate => [name, ''])
  return [...commandsOf(program).filter(([name]) => name !== 'help'), ...words]
}

/** The choices of an option or argument, or the names of stores. */
async function valuesOf(of: Option | Argument, text: string, io: Io): Promise<Candidate[]> {
  if (of.argChoices) return of.argChoices.map((word) => [word, ''])
  const name = 'flags' in of ? /<(?<name>\w+)/.exec(of.flags)?.groups?.['name'] : of.name()
  const isAddress = /^\w+:/.test(text)
  if ((name !== 'address' && name !== 'store') || isAddress) return []
  return [...(await savedStores(io)), ['local', 'your own store, which is built in']]
}

/** Invalid settings only mean fewer candidates; the next command reports them. */
async function savedStores(io: Io): Promise<Candidate[]> {
  try {
    const { saved } = await readSettings(io)
    const named = namedStores(saved).map(
      async ([name, { address }]) => [name, shorten(await shownStore(address, io, saved))] as const,
    )
    return await Promise.all(named)
  } catch (error) {
    if (error instanceof PlantsError) return []
    throw error
  }
}
