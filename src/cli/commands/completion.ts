/*
 * Completes command lines. A script for each shell calls `plants __complete SHELL LINE` with the
 * line up to the cursor. The candidates come from the commands and options of commander, so a new
 * option needs no change in the scripts. Commander cannot say what may follow in an incomplete
 * line, so `findPosition` goes through the words of the line.
 */
import type { Argument, Command, Option } from 'commander'
import { parseChoice } from '../../config/option-values.js'
import { listNamedStores } from '../../config/resolve.js'
import { readSettings } from '../../config/settings-file.js'
import { PlantsError } from '../../errors.js'
import { writeStdout } from '../../output/output.js'
import type { Io } from '../../platform/io.js'
import type { PlantsCommand } from '../command.js'
import { isNamed } from '../command-names.js'
import bash from '../completions/plants.bash?raw'
import fish from '../completions/plants.fish?raw'
import powershell from '../completions/plants.ps1?raw'
import zsh from '../completions/plants.zsh?raw'
import type { GlobalOptions } from '../global-options.js'

const scripts = { bash, zsh, fish, powershell }

export function define(command: PlantsCommand): void {
  command
    .description(
      'Print the completion script for a shell. The comments at the top of the script say how to install it.',
    )
    .choiceArgument('shell', 'shell to print the script for', Object.keys(scripts))
    .addExamples('source <(plants completion bash)', 'plants completion powershell')
    .handler(({ output }: GlobalOptions, io, shell: keyof typeof scripts) => {
      if (output !== undefined) parseChoice('--output', output, ['text'])
      return writeStdout(io, scripts[shell])
    })
}

type Candidate = readonly [word: string, description: string]

/** This is what may follow in a command line. */
interface Completion {
  candidates: readonly Candidate[]
  /** Whether the shell offers files if no candidate matches. */
  takesFiles: boolean
}

const nothing: Completion = { candidates: [], takesFiles: false }

/** The scripts compare their only line with this. No candidate contains a colon. */
const noFilesLine = ':\n'

/**
 * Prints the candidates for the last word of a line, each with a tab and its description, except
 * for bash, which shows no descriptions. Without candidates, the shell offers files, or nothing
 * after `noFilesLine`.
 *
 * @param line the line up to the cursor, such as `plants list --ta`
 */
export async function printCompletions(
  shell: string | undefined,
  line: string,
  buildProgram: (words: readonly string[]) => Promise<Command>,
  io: Io,
): Promise<void> {
  const [, ...words] = splitWords(line)
  const text = words.pop() ?? ''
  const { candidates, takesFiles } = await complete(text, words, await buildProgram(words), io)
  const matchingCandidates = candidates.filter(([word]) => word.startsWith(text))
  if (matchingCandidates.length === 0) return takesFiles ? undefined : writeStdout(io, noFilesLine)
  const lines = matchingCandidates.map(([word, description]) =>
    shell === 'bash' ? `${word}\n` : `${word}\t${description}\n`,
  )
  await writeStdout(io, lines.join(''))
}

/**
 * Splits a line into words without their quotes, as a shell would. The last word is being typed: it
 * may be empty, and its quotes may be open.
 */
export function splitWords(line: string): string[] {
  const word = /(?:[^\s'"\\]|\\.?|'[^']*'?|"(?:[^"\\]|\\.)*"?)+/gs
  const words = Array.from(line.matchAll(word), ([text]) =>
    text.replace(/\\(?<escaped>.)|['"]/gs, '$<escaped>'),
  )
  return /^$|(?<!\\)\s$/.test(line) ? [...words, ''] : words
}

async function complete(
  text: string,
  wordsBefore: readonly string[],
  program: Command,
  io: Io,
): Promise<Completion> {
  const position = findPosition(wordsBefore, program)
  if (position === undefined) return { candidates: [], takesFiles: true }
  const { command, operands, pendingOption } = position
  if (pendingOption) return completeValue(pendingOption, io)
  if (text.startsWith('-'))
    return { candidates: listOptions(command), takesFiles: text.includes('=') }
  const commands = command.name() === 'help' ? await listHelp(program) : listCommands(command)
  if (commands.length > 0) return { ...nothing, candidates: operands.length === 0 ? commands : [] }
  const { registeredArguments } = command
  const argument =
    registeredArguments[operands.length] ?? registeredArguments.find(({ variadic }) => variadic)
  if (!argument) return { ...nothing, candidates: listOptions(command) }
  // The value of a setting is what its option takes.
  const [setting = ''] = argument.name() === 'value' ? operands : []
  return completeValue(findOptionWithValue(command, `--${setting}`) ?? argument, io)
}

/**
 * Finds what may be at the cursor, as the words before it say.
 *
 * @returns the command, its operands before the cursor, and the option whose value this word is, as
 *   after `--output`; undefined after `--`, where nothing is an option or a command
 */
function findPosition(wordsBefore: readonly string[], program: Command) {
  let command = program
  const operands: string[] = []
  let pendingOption: Option | undefined
  for (const word of wordsBefore) {
    const subcommand = command.commands.find((candidate) => isNamed(candidate, word))
    if (word === '--') return undefined
    if (pendingOption) pendingOption = undefined
    else if (word.startsWith('-')) pendingOption = findOptionWithValue(command, word)
    else if (subcommand && operands.length === 0) command = subcommand
    else operands.push(word)
  }
  return { command, operands, pendingOption }
}

function findOptionWithValue({ options }: Command, word: string): Option | undefined {
  return options.find(({ short, long, required }) => required && (short === word || long === word))
}

function listOptions({ options }: Command): Candidate[] {
  const candidates = options.map(({ long = '', description }): Candidate => [long, description])
  return [...candidates, ['--help', 'show this help']]
}

function listCommands({ commands }: Command): Candidate[] {
  return commands.map((command) => [command.name(), command.summary() || command.description()])
}

/** Lists what `plants help` shows: commands and topics. */
async function listHelp(program: Command): Promise<Candidate[]> {
  const { listTopics } = await import('../topics.js')
  return [...listCommands(program), ...listTopics()]
}

/** The operands that take a file, by the names that help shows. An address may be a path. */
const fileNames = ['path', 'file', 'files', 'address', 'store']

/** Completes the value of an option or an argument. */
async function completeValue(operand: Option | Argument, io: Io): Promise<Completion> {
  const name =
    'flags' in operand ? /<(?<name>\w+)/.exec(operand.flags)?.groups?.['name'] : operand.name()
  const takesFiles = fileNames.includes(name ?? '')
  if (operand.argChoices)
    return { candidates: operand.argChoices.map((word) => [word, '']), takesFiles }
  const isStore = name === 'address' || name === 'store'
  return { candidates: isStore ? await listStores(io) : [], takesFiles }
}

/** Invalid settings only mean fewer candidates; the next command reports them. */
async function listStores(io: Io): Promise<Candidate[]> {
  const local: Candidate = ['local', 'your own store (built in)']
  try {
    const { savedSettings } = await readSettings(io)
    const names = listNamedStores(savedSettings).map(([name]) => name)
    return [...names.map((name): Candidate => [name, 'a saved store']), local]
  } catch (error) {
    if (error instanceof PlantsError) return [local]
    throw error
  }
}
