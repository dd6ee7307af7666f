import type { Command } from 'commander'
import { writeAnswer, writeError } from '../../output/output.js'
import { malformed, PlantsError, systemCode } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { parseChoice } from '../../platform/values.js'
import { shownAddress } from '../../stores/common/address.js'
import { type CommandLine, findOption, longName, parseCommandLine, takesValue } from '../command-line.js'
import { loadCommands, plants } from '../commands/index.js'
import { writeVersion } from '../commands/version.js'
import { printCompletions } from '../completion/complete.js'
import { errorFormat, isInteractive, mayColor } from '../context.js'
import { type CommandDefinition, type GlobalFlags, globalOptions, type OptionDefinition, otherNamesOf } from '../define-command.js'
import { helpPage } from '../help/page.js'

/** Runs a command line, and returns its exit code. Never throws. */
export async function run(argv: string[], io: Io): Promise<number> {
  addSecrets(argv, io)
  try {
    await runProgram(argv, io)
    return 0
  } catch (error) {
    if (systemCode(error) === 'EPIPE') return 0
    if (error instanceof PlantsError) return await report(error, argv, io)
    const message = `Internal error, a bug in plants: ${error instanceof Error ? error.message : String(error)}`
    const hint = 'Please report it, with this text, your command, and what this prints: plants version --output json'
    return await report(new PlantsError('defect', message, { hint, cause: error }), argv, io)
  }
}

/** Prints the error, and returns its exit code, or that of a signal that arrives while stderr is blocked. */
async function report(failure: PlantsError, argv: string[], io: Io): Promise<number> {
  try {
    const flags = globalFlags(parseCommandLine(argv, plants))
    const errors = await errorFormat(flags.output, io)
    await writeError(io, failure, { errors, colors: (stream) => mayColor(stream, flags, io) })
    return failure.exitCode
  } catch (interruption) {
    if (!(interruption instanceof PlantsError)) throw interruption
    return interruption.exitCode
  }
}

/** Collects the secrets of a run before anything is printed. Those in arguments are rejected, but another error could print them first. */
function addSecrets(argv: string[], { env, secrets }: Io): void {
  const tokens = ['PLANTS_TOKEN', 'PLANTS_SERVE_TOKEN'].map((name) => env[name]?.trim())
  for (const argument of argv) {
    tokens.push(/plants_[\w-]{43}/.exec(argument)?.[0]) // of `plants tokens create`
    tokens.push(/^(?:PLANTS_TOKEN|PLANTS_SERVE_TOKEN|PGPASSWORD)=(.+)$/s.exec(argument)?.[1])
  }
  for (const token of tokens) if (token) secrets.add(token)
  const addresses = argv
    .map((argument) => argument.replace(/^(?:--[\w-]+=|-[a-z])/, ''))
    .filter((argument) => /[@/]|%40|password/i.test(argument))
  for (const text of [...addresses, env['PLANTS_STORE'] ?? '']) {
    const found: string[] = []
    const shown = shownAddress(text, (secret) => found.push(secret))
    for (const secret of found) if (!shown.includes(secret)) secrets.add(secret) // otherwise the *** would show which word is the secret
  }
}

/** Help, the version and completions come from the definitions; commander is loaded only for the rest. */
async function runProgram(argv: string[], io: Io): Promise<void> {
  if (!io.argumentsAreExact()) throw malformed('An argument is not UTF-8', 'Use a UTF-8 terminal, or read the plant from JSON with --file')
  await loadCommands(argv)
  const [first, second, ...rest] = argv
  if (first === '__complete' && second === '--') return printCompletions(rest, plants, io)
  if (first === '__complete' && second === '--next') return printCompletions([...rest.slice(1), ''], plants, io)
  const parsed = parseCommandLine(argv, plants)
  const { command, given, operands, unknown, pending } = parsed
  if (given.has('--version') || (first === 'version' && argv.length === 1)) return writeVersion(given.get('--output'), io)
  const isGroup = command.commands && command !== plants && operands.length === 0
  const asksHelp = argv.length === 0 || parsed.isHelp || isGroup
  if (given.has('--help') || (asksHelp && unknown.length === 0 && !pending)) return writeHelp(parsed, io)
  if (command.commands) throw (await import('./usage.js')).usageError(argv, parsed)
  await runCommand(argv, parsed, io)
}

function globalFlags({ given }: CommandLine): GlobalFlags {
  return { output: given.get('--output'), color: !given.has('--no-color'), input: !given.has('--no-input') }
}

/** Prints help, in a pager if the page is longer than an interactive terminal. */
async function writeHelp(parsed: CommandLine, io: Io): Promise<void> {
  const { names, command, operands, isHelp } = parsed
  const topic = isHelp && operands.length === 1 ? command.topics?.find(({ name }) => name === operands[0]) : undefined
  if (!topic && operands.length > 0 && (isHelp || command.commands)) throw (await import('./usage.js')).unknownCommand(parsed)
  const flags = globalFlags(parsed)
  const { isTerminal } = io.stdout
  const strong = mayColor(io.stdout, flags, io) ? (text: string) => `\u001b[1m${text}\u001b[22m` : String // chalk takes 2 ms to load
  const layout = { width: isTerminal ? io.stdout.columns : 100, strong }
  const text = topic ? await topic.page(layout) : helpPage(names, command, layout)
  const isLong = isTerminal && text.split('\n').length > io.stdout.rows
  if (isLong && isInteractive(flags, io) && io.env['TERM'] !== 'dumb') {
    io.signal.throwIfAborted() // from here on the pager receives Ctrl-C
    const { showInPager } = await import('../../platform/pager.js')
    const { withoutSecrets } = await import('../../auth/child-environment.js')
    if (showInPager(text, { env: withoutSecrets(io.env) })) return
  }
  await writeAnswer(io, text)
}

async function runCommand(argv: string[], parsed: CommandLine, io: Io): Promise<void> {
  const words = withoutTraps(argv, parsed)
  if (parsed.repeated !== undefined) throw malformed(`${parsed.repeated} was given twice`, 'Leave out one of them')
  const name = [...parsed.given.keys()].find((each) => parsed.given.has(each.replace(/^--/, '--no-')))
  if (name !== undefined) throw malformed(`${name} cannot be used with ${name.replace(/^--/, '--no-')}`, 'Leave out one of them')
  const { Command, CommanderError } = await import('commander')
  const program = new Command(plants.name)
    .helpOption(false)
    .helpCommand(false)
    .configureOutput({ outputError: () => undefined })
    .exitOverride()
  for (const option of globalOptions) addOption(program, option)
  addCommands(program, plants, io)
  try {
    await program.parseAsync(words, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    throw (await import('./usage.js')).usageError(argv, parsed, error)
  }
}

function addCommands(parent: Command, { commands = [] }: CommandDefinition, io: Io): void {
  // A command that is not loaded has neither `run` nor subcommands.
  for (const definition of commands.filter(({ run, commands: below }) => run ?? below)) {
    const { run } = definition
    const command = parent.command(definition.name).aliases(otherNamesOf(definition))
    for (const { name, description, parse: read } of definition.arguments ?? []) {
      const argument = command.createArgument(name, description)
      if (read) argument.argParser((text: string) => read(argument.name(), text))
      command.addArgument(argument)
    }
    for (const option of definition.options ?? []) addOption(command, option)
    if (run) command.action(() => run({ args: command.processedArgs.flat(), flags: command.optsWithGlobals() }, io))
    addCommands(command, definition, io)
  }
}

/** Does not use `.choices()`, whose error has no fields for the option and the value. */
function addOption(command: Command, definition: OptionDefinition): void {
  const { flags, description, choices, parse, conflicts, default: text } = definition
  const option = command.createOption(flags, description)
  const flag = longName(definition)
  const read = parse ?? (choices && ((name: string, value: string) => parseChoice(name, value, choices)))
  if (read) option.argParser((value: string) => read(flag, value))
  if (text !== undefined) option.default(read ? read(flag, text) : text, text)
  if (conflicts) option.conflicts(conflicts)
  command.addOption(option)
}

/**
 * The words with `-y -q` for `-yq`, which commander takes together only if one command has both. Throws `malformed` for
 * `--name --tag x`, where commander would use `--tag` as the name, and for `-name Fern`, where it would use "ame".
 * `--sort -name` is left to the error that lists the valid values.
 */
function withoutTraps(argv: string[], parsed: CommandLine): string[] {
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length
  const words = argv.slice(0, end).flatMap((word, at) => {
    const next = argv[at + 1] ?? ''
    const option = findOption(word, parsed)
    const value = next.startsWith('--') ? next.replace(/=.*/s, '') : next
    if (option && takesValue(option) && /^-[^\d.]/.test(next) && !(option.choices && !findOption(value, parsed))) {
      const placeholder = / <(?<name>text|path)>$/.exec(option.flags)?.groups?.['name']?.toUpperCase()
      const hint = placeholder && `For a value that begins with a dash: ${longName(option)}=${placeholder}`
      const help = `See: ${['plants', ...parsed.names].join(' ')} --help`
      throw malformed(`${word} needs a value, but ${value} follows`, hint ?? help)
    }
    const name = word.replace(/=.*/s, '')
    const long = /^-[^-]./.test(word) ? findOption(`-${name}`, parsed) : undefined
    if (long) throw malformed(`Unknown option ${name}`, `Did you mean -${name}?`)
    return separateSwitches(word, parsed)
  })
  return [...words, ...argv.slice(end)]
}

function separateSwitches(word: string, parsed: CommandLine): string[] {
  const first = /^-[^-]./.test(word) ? findOption(word.slice(0, 2), parsed) : undefined
  if (!first || takesValue(first)) return [word]
  return [word.slice(0, 2), ...separateSwitches(`-${word.slice(2)}`, parsed)]
}
