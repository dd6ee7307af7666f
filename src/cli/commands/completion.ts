/*
 * Completes command lines. A script for each shell calls `plants __complete SHELL LINE` with the
 * line up to the cursor. The candidates come from the commands and options of commander, so a new
 * option needs no change in the scripts. Commander cannot say what may follow in an incomplete
 * line, so `findPosition` goes through the words of the line.
 */
import type { Argument, Command, Option } from 'commander'
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

const scripts = { bash, zsh, fish, powershell }

export function define(command: PlantsCommand): void {
  command
    .description('Print the completion script of a shell. Its first lines say where to install it.')
    .choiceArgument('shell', 'shell to print the script for', Object.keys(scripts))
    .addExamples('source <(plants completion bash)', 'plants completion zsh > _plants')
    .handler((_options, io, shell: keyof typeof scripts) => writeStdout(io, scripts[shell]))
}

type Candidate = readonly [word: string, description: string]

/**
 * Prints the candidates for the last word of a line, each with a tab and its description, except
 * for bash, which shows no descriptions. Without candidates, the shell offers files.
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
  const candidates = await findCandidates(text, words, await buildProgram(words), io)
  const matchingCandidates = candidates.filter(([word]) => word.startsWith(text))
  // For bash, `=` and `:` end a word. So of `--output=json`, bash replaces only `json`.
  const insertFrom = shell === 'bash' ? text.search(/[^=:]*$/) : 0
  const lines = matchingCandidates.map(([word, description]) =>
    shell === 'bash' ? `${word.slice(insertFrom)}\n` : `${word}\t${description}\n`,
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

async function findCandidates(
  text: string,
  wordsBefore: readonly string[],
  program: Command,
  io: Io,
): Promise<readonly Candidate[]> {
  const position = findPosition(wordsBefore, program)
  if (position === undefined) return []
  const { command, operandCount, pendingOption } = position
  if (pendingOption) return listValues(pendingOption, io)
  const [flag = ''] = /^--[^=]+(?==)/.exec(text) ?? []
  if (flag !== '') return listJoinedValues(command, flag, io)
  if (text.startsWith('-')) return listOptions(command)
  const commands = listCommands(command.name() === 'help' ? program : command)
  if (commands.length > 0) return operandCount === 0 ? commands : []
  const { registeredArguments } = command
  const argument =
    registeredArguments[operandCount] ?? registeredArguments.find(({ variadic }) => variadic)
  return argument ? listValues(argument, io) : listOptions(command)
}

/** What may be at the cursor, as the words before it say. */
interface Position {
  command: Command
  /** The number of operands of the command before the cursor. */
  operandCount: number
  /** The option whose value this word is, as after `--output`. */
  pendingOption: Option | undefined
}

/** Returns undefined after `--`, where nothing is an option or a command. */
function findPosition(wordsBefore: readonly string[], program: Command): Position | undefined {
  let command = program
  let operandCount = 0
  let pendingOption: Option | undefined
  for (const word of wordsBefore) {
    const subcommand = command.commands.find((candidate) => isNamed(candidate, word))
    if (word === '--') return undefined
    if (pendingOption) pendingOption = undefined
    else if (word.startsWith('-')) pendingOption = findOptionWithValue(command, word)
    else if (subcommand && operandCount === 0) command = subcommand
    else operandCount += 1
  }
  return { command, operandCount, pendingOption }
}

/** Lists candidates such as `--output=json`. */
async function listJoinedValues(command: Command, flag: string, io: Io): Promise<Candidate[]> {
  const option = findOptionWithValue(command, flag)
  const values = option ? await listValues(option, io) : []
  return values.map(([word, description]) => [`${flag}=${word}`, description])
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

/**
 * Lists the choices of an option or an argument. If it is called `<store>` or `<address>`, the
 * choices are the names of stores.
 */
async function listValues(operand: Option | Argument, io: Io): Promise<Candidate[]> {
  if (operand.argChoices) return operand.argChoices.map((word) => [word, ''])
  const name =
    'flags' in operand ? /<(?<name>\w+)/.exec(operand.flags)?.groups?.['name'] : operand.name()
  if (name !== 'address' && name !== 'store') return []
  return [...(await listSavedStores(io)), ['local', 'your own store (built in)']]
}

/** Invalid settings only mean fewer candidates; the next command reports them. */
async function listSavedStores(io: Io): Promise<Candidate[]> {
  try {
    const { savedSettings } = await readSettings(io, 0)
    return listNamedStores(savedSettings).map(([name]) => [name, 'a saved store'])
  } catch (error) {
    if (error instanceof PlantsError) return []
    throw error
  }
}
