import { Command, CommanderError, type HelpContext, Option, type OptionValueSource } from 'commander'
import { outputFormats, parseChoice } from '../config/option-values.js'
import { defaultOf, settingNames, settingOf } from '../config/setting-table.js'
import { malformed, type PlantsError } from '../platform/errors.js'
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
  /** three at most */
  examples: readonly string[] = []
  /** not wrapped, because some lines are shell commands */
  notes: readonly { title: string; lines: readonly string[] }[] = []

  /** of the program: the whole command line */
  line: readonly string[] = []
  #load: (() => Promise<Define>) | undefined

  override createCommand(name?: string): PlantsCommand {
    return new PlantsCommand(name)
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

  /** The global options, which the help of a command does not repeat, and the end of its help. */
  #addCommonParts(): void {
    this.optionsGroup('')
    for (const option of globalOptions())
      if (!this.options.some(({ long }) => long === option.long)) this.addOption(option.hideHelp())
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
    // commander's own sentence would have no hint
    return this.addOption(option.argParser((text) => parseChoice(option.long ?? flags, text, words, hintFor(text))))
  }

  /** @param run reads the options by the names that commander makes of their flags */
  handler<Options extends GlobalOptions, Args extends unknown[]>(
    run: (options: Options, ...args: Args) => Promise<void>,
  ): this {
    return this.action(() => run(this.allOptions() as Options, ...(this.processedArgs as Args)))
  }

  /** With the global options that stand before the name of the command. Throws `malformed` for two values of one. */
  allOptions(): GlobalOptions {
    const above = this.parent instanceof PlantsCommand ? this.parent.allOptions() : {}
    const given = (name: string) => this.getOptionValueSource(name) === 'cli'
    for (const option of this.options)
      if (option.required && given(option.attributeName()) && option.attributeName() in above) throw givenTwice(option)
    const own = Object.entries(this.opts()).filter(([name]) => !(name in above) || given(name))
    return { ...above, ...Object.fromEntries(own) }
  }

  /** Throws `malformed` for a long option in the place of a value, which an empty variable of a shell leaves there. */
  override addOption(option: Option): this {
    const { parseArg } = option
    const parse = (text: string, before: unknown) => {
      const flag = text.replace(/=.*/s, '')
      if (this.options.some(({ long }) => long === flag) && this.#line().includes(text))
        throw malformed(`${option.long} needs a value, but ${flag} follows`, `For such a value: ${option.long}=VALUE`)
      return parseArg ? parseArg(text, before) : text
    }
    return super.addOption(option.required ? option.argParser(parse) : option)
  }

  #line(): readonly string[] {
    return this.parent instanceof PlantsCommand ? this.parent.#line() : this.line
  }

  /** Throws `malformed` for a second value. */
  override setOptionValueWithSource(name: string, value: unknown, source: OptionValueSource): this {
    const [option, negated] = this.options.filter((each) => each.attributeName() === name)
    if (option && source === 'cli' && this.getOptionValueSource(name) === 'cli') {
      if ((this.getOptionValue(name) === false) !== (value === false))
        throw malformed(`${option.long} cannot be used with ${negated?.long}`, 'Leave out one of them')
      if (value !== false && option.required && !option.variadic) throw givenTwice(option)
    }
    return super.setOptionValueWithSource(name, value, source)
  }

  override error(message: string, { code = '' }: { code?: string } = {}): never {
    if (message.startsWith("error: unknown option '--help=")) return this.help()
    throw usageError(this, message, code)
  }

  /** Commander would print the help of a program without a command, as an error. */
  override help(context?: HelpContext | ((text: string) => string)): never {
    if (this.parent === null && typeof context === 'object' && context.error)
      throw malformed('No command was given', 'See: plants --help')
    return super.help()
  }
}

function givenTwice({ long }: Option): PlantsError {
  return malformed(`${long} was given twice`, 'Leave out one of them')
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
    // for shells: it is parsed with the settings
    return name === 'output' ? option.choices(outputFormats).argParser(String) : option
  })
  return [
    ...ofSettings,
    new Option('-v, --verbose', 'log settings and their sources, requests and responses on stderr'),
    new Option('-q, --quiet', 'print only results and errors: no confirmations, warnings or progress'),
    new Option('--no-input', 'never prompt; also PLANTS_NO_INPUT and CI'),
    new Option('--no-color', 'no colours; also NO_COLOR'),
  ]
}

/**
 * An error of commander, whose suggestion becomes the hint. The value of an unknown option is left out, because it may be
 * a secret.
 */
function usageError(command: Command, message: string, code: string): PlantsError {
  const { sentence = '', suggestion } = partsOf(message)
  const option = code === 'commander.unknownOption' ? /^unknown option '(--[^=']*|-.)/.exec(sentence)?.[1] : undefined
  if (option === '--token' || option === '--password') {
    const what = `A ${option.slice(2)} is not accepted on the command line, where other users can see it`
    const hint = option === '--token' ? 'Set PLANTS_TOKEN, or save one with: plants auth login' : inPlaceOfPassword
    return malformed(what, hint)
  }
  if (command.options.some(({ long }) => long === option)) return malformed(`${option} takes no value`, 'Leave it out')
  const text = option === undefined ? sentence.replace(/\.$/, '') : `unknown option ${option}`
  const name = nameOf(command)
  const usage = `Usage: plants ${name} ${command.usage()}`
  const isOfArguments = code === 'commander.missingArgument' || code === 'commander.excessArguments'
  const help = `${isOfArguments ? `${usage}. ` : ''}See: plants ${`${name} --help`.trim()}`
  const guess =
    insteadOf[`${name} ${option}`] ?? suggestion ?? (option?.startsWith('--') ? globalSuggestion(option) : undefined)
  const isRisky = /\b(remove|delete|revoke|unset|logout)\b/.test(guess ?? '')
  return malformed(text.charAt(0).toUpperCase() + text.slice(1), isRisky ? help : (guess ?? help))
}

/** Splits an error of commander into its sentence and its suggestion. */
function partsOf(message: string): { sentence?: string; suggestion?: string } {
  return /^error: (?<sentence>.*?)(?:\n\((?<suggestion>Did you mean .*)\))?$/s.exec(message)?.groups ?? {}
}

/** Knows the global options alone. */
export function globalParser(): Command {
  const command = new Command().exitOverride().configureOutput({ outputError: () => undefined })
  for (const option of globalOptions()) command.addOption(option)
  return command
}

/** The help of a command, which commander's suggestions are from, does not list the global options. */
function globalSuggestion(option: string): string | undefined {
  try {
    globalParser().parse([option], { from: 'user' })
    return undefined
  } catch (error) {
    if (error instanceof CommanderError) return partsOf(error.message).suggestion
    throw error
  }
}

/** What to write in place of an option of an earlier version. */
const insteadOf: Readonly<Record<string, string>> = {
  'export --out': 'The file is an argument: plants export FILE',
}

const inPlaceOfPassword = 'Set PGPASSWORD, or write it to ~/.pgpass'

function nameOf(command: Command): string {
  return command.parent ? `${nameOf(command.parent)} ${command.name()}`.trim() : ''
}
