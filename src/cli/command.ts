import { Command, CommanderError, Option } from 'commander'
import { outputFormats, parseChoice } from '../config/option-values.js'
import { defaultOf, settingNames, settingOf } from '../config/setting-table.js'
import { malformed, must, type PlantsError, passwordFile } from '../platform/errors.js'
import type { Io } from '../platform/io.js'

/** Every command takes these, before or after its name. */
export interface GlobalOptions {
  store?: string
  output?: string
  timeout?: string
  caCert?: string
  allowHttp?: boolean
  verbose?: boolean
  quiet?: boolean
  input?: boolean
  color?: boolean
}

/** Declares the options and the handler of a command. */
export type Define = (command: PlantsCommand, io: Io) => void

/** Commander's command, with examples, our errors, and option values that are given once. */
export class PlantsCommand extends Command {
  /** Three at most. */
  examples: readonly string[] = []
  /** Not wrapped, because some lines are shell commands. */
  notes: readonly { title: string; lines: readonly string[] }[] = []

  /** The whole command line. */
  readonly #line: readonly string[]
  #load: (() => Promise<Define>) | undefined

  constructor(name?: string, line: readonly string[] = []) {
    super(name)
    this.#line = line
  }

  override createCommand(name?: string): PlantsCommand {
    return new PlantsCommand(name, this.#line)
  }

  /** The command is defined when it is needed. */
  loadedBy(load: () => Promise<Define>): this {
    this.#load = load
    return this
  }

  async load(io: Io): Promise<void> {
    const define = await this.#load?.()
    if (!define) return
    this.#load = undefined
    define(this, io)
    if (this.commands.length > 0)
      this.usage('<command> [options]').helpCommand('help [command]', 'show help for a command')
    for (const each of [this, ...this.commands]) if (each instanceof PlantsCommand) each.#addCommonParts()
  }

  /** The global options, of which the help of a command has the most used ones, and the end of its help. */
  #addCommonParts(): void {
    this.optionsGroup('Options:')
    for (const option of globalOptions()) {
      const { long = '' } = option
      option.description = listedMeanings[long] ?? option.description
      if (!this.options.some((each) => each.long === long)) this.addOption(option.hideHelp(!(long in listedMeanings)))
    }
    const { notes, examples } = this
    const sections = examples.length > 0 ? [...notes, { title: 'Examples', lines: examples }] : notes
    const texts = sections.map(({ title, lines }) => `${title}:\n${lines.map((line) => `  ${line}\n`).join('')}\n`)
    this.addHelpText('after', `\n${texts.join('')}Global options: plants help options`)
  }

  addExamples(...lines: string[]): this {
    this.examples = lines
    return this
  }

  addNotes(title: string, ...lines: string[]): this {
    this.notes = [...this.notes, { title, lines }]
    return this
  }

  /**
   * An option whose value is parsed, and rejected with its name.
   *
   * @param preset the text of its default value
   */
  value<T>(flags: string, description: string, parse: (flag: string, text: string) => T, preset?: string): this {
    const option = new Option(flags, description)
    const parser = (text: string) => parse(option.long ?? flags, text)
    if (preset !== undefined) option.default(parser(preset), preset)
    return this.addOption(option.argParser(parser))
  }

  /** An option with one of these words. */
  choice(
    flags: string,
    description: string,
    words: readonly string[],
    byDefault?: string,
    hintFor: (text: string) => string | undefined = () => undefined,
  ): this {
    const option = new Option(flags, description).choices(words)
    if (byDefault !== undefined) option.default(byDefault)
    // Commander's own sentence would have no hint.
    return this.addOption(option.argParser((text) => parseChoice(option.long ?? flags, text, words, hintFor(text))))
  }

  /** @param run reads the options by the names that commander makes of their flags */
  handler<Options extends GlobalOptions, Args extends unknown[]>(
    run: (options: Options, ...args: Args) => Promise<void>,
  ): this {
    return this.action(() => run(this.allOptions() as Options, ...(this.processedArgs as Args)))
  }

  /** With the global options that stand before the name of the command. */
  allOptions(): GlobalOptions {
    const above = this.parent instanceof PlantsCommand ? this.parent.allOptions() : {}
    const own = Object.entries(this.opts()).filter(([name]) => !(name in above) || this.#isGiven(name))
    return { ...above, ...Object.fromEntries(own) }
  }

  #isGiven(name: string): boolean {
    return this.getOptionValueSource(name) === 'cli'
  }

  /** Whether it is an option of this command, or of one above, that was given. */
  #isGivenUpTo(name: string): boolean {
    return this.#isGiven(name) || (this.parent instanceof PlantsCommand && this.parent.#isGivenUpTo(name))
  }

  /**
   * Throws `malformed` for a second value, for an option and its opposite, and for a long option in the place of a value,
   * which an empty variable of a shell leaves there.
   */
  override addOption(option: Option): this {
    const { long, negate, parseArg, required, variadic } = option
    const name = option.attributeName()
    const parse = (text: string, before: unknown) => {
      const flag = required ? text.split('=', 1)[0] : undefined
      if (required && this.options.some((each) => each.long === flag) && this.#line.includes(text))
        throw malformed(`${long} needs a value, but ${flag} follows`, `For such a value: ${long}=VALUE`)
      const value = parseArg ? parseArg(text, before) : text
      const word = option.name().replace(/^no-/, '')
      if (this.#isGiven(name) && (before === false) !== negate)
        throw malformed(`--${word} cannot be used with --no-${word}`, 'Leave out one of them')
      if (required && !variadic && this.#isGivenUpTo(name))
        throw malformed(`${long} was given twice`, 'Leave out one of them')
      return value // commander replaces the undefined one of a switch
    }
    return super.addOption(option.argParser(parse))
  }

  /** With a hint, which may be commander's own suggestion. */
  override error(message: string, { code }: { code?: string } = {}): never {
    if (code !== 'commander.unknownOption') throw usageError(this, message, code)
    const option = unknownOption(this)
    throw option === '--help' ? this.help() : optionError(this, option, partsOf(message).suggestion)
  }
}

/** The global options in the help of each command. */
const listedMeanings: Readonly<Record<string, string>> = {
  '--store': 'store: a saved name, a path or an address',
  '--output': 'output format, such as json; for plants also csv or tsv',
}

export async function loadCommand(command: Command, io: Io): Promise<void> {
  if (command instanceof PlantsCommand) await command.load(io)
}

export function globalOptions(): Option[] {
  const ofSettings = settingNames.flatMap((name) => {
    const { flags, meaning } = settingOf(name)
    if (flags === undefined) return []
    const isSwitch = !flags.includes('<')
    const option = new Option(flags, isSwitch ? meaning : `${meaning}; by default ${defaultOf(name)}`)
    // For shells. It is parsed with the settings.
    return name === 'output' ? option.choices(outputFormats).argParser(String) : option
  })
  return [
    ...ofSettings,
    new Option('-v, --verbose', 'log settings and their sources, requests and responses on stderr'),
    new Option('-q, --quiet', 'print only results and errors: no confirmations, warnings or progress'),
    new Option('--no-input', 'never prompt, and start no pager; also PLANTS_NO_INPUT and CI'),
    new Option('--no-color', 'no colours; also NO_COLOR'),
  ]
}

/** The first one, without its value, which may be a secret. Commander leaves in `args` what it has not used. */
function unknownOption({ args }: Command): string {
  const [text = ''] = new Command().parseOptions([...args]).unknown
  return text.startsWith('--') ? must(text.split('=', 1)[0]) : text.slice(0, 2)
}

function optionError(command: Command, option: string, suggestion: string | undefined): PlantsError {
  if (option === '--token' || option === '--password') {
    const what = `A ${option.slice(2)} is not accepted on the command line, where other users can see it`
    return malformed(what, inPlaceOf[option])
  }
  if (command.options.some(({ long }) => long === option)) return malformed(`${option} takes no value`, 'Leave it out')
  // Commander suggests what the help lists, which has no global options.
  const guess = suggestion ?? partsOf(parseGlobalOptions([option]).message).suggestion
  return malformed(`Unknown option ${option}`, insteadOf[`${nameOf(command)} ${option}`] ?? guess ?? helpOf(command))
}

function usageError(command: Command, message: string, code: string | undefined): PlantsError {
  const { sentence, suggestion } = partsOf(message)
  const what = sentence.charAt(0).toUpperCase() + sentence.slice(1)
  const isOfArguments = code === 'commander.missingArgument' || code === 'commander.excessArguments'
  const usage = isOfArguments ? `Usage: plants ${nameOf(command)} ${command.usage()}. ` : ''
  const isSafe = !risky.some((word) => suggestion?.includes(word))
  return malformed(what, suggestion && isSafe ? suggestion : usage + helpOf(command))
}

/** Commands that are not suggested to who mistyped another word. */
const risky = ['remove', 'delete', 'revoke', 'unset', 'logout']

function helpOf(command: Command): string {
  return `See: plants ${`${nameOf(command)} --help`.trim()}`
}

/** The sentence of an error of commander, and the suggestion that it appends in parentheses, as a line. */
function partsOf(message: string): { sentence: string; suggestion: string | undefined } {
  const end = message.endsWith('?)') ? message.lastIndexOf('\n(') : message.length
  const sentence = message.slice('error: '.length, end)
  const suggestion = message.slice(end + 2, -1) || undefined
  return { sentence: sentence.endsWith('.') ? sentence.slice(0, -1) : sentence, suggestion }
}

/** Parses them alone, also in an invalid command line. Returns commander's message for what it does not know, too. */
export function parseGlobalOptions(argv: readonly string[]): { options: GlobalOptions; message: string } {
  const command = new Command()
    .exitOverride()
    .helpOption(false)
    .configureOutput({ outputError: () => undefined })
  for (const option of globalOptions()) command.addOption(option)
  try {
    command.parse(argv, { from: 'user' })
    return { options: command.opts(), message: '' }
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    return { options: command.opts(), message: error.message }
  }
}

/** What to write in place of an option of an earlier version. */
const insteadOf: Readonly<Record<string, string>> = {
  'export --out': 'The file is an argument: plants export FILE',
}

const inPlaceOf = {
  '--token': 'Set PLANTS_TOKEN, or save one with: plants auth login',
  '--password': `Set PGPASSWORD, or write it to ${passwordFile}`,
}

function nameOf(command: Command): string {
  return command.parent ? `${nameOf(command.parent)} ${command.name()}`.trim() : ''
}
