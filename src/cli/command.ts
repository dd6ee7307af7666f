import { Command, CommanderError, Option } from 'commander'
import { outputFormats, parseChoice } from '../config/option-values.js'
import { defaultOf, settingNames, settingOf } from '../config/setting-table.js'
import { malformed, type PlantsError, passwordFile } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { commandHint, mayHaveSecret, missingHint, nameOf, optionHint, strayHint } from './guesses.js'

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
    return this.action(() => {
      if (this.registeredArguments[0]?.name() === 'id' && this.#isHelpWord()) this.help()
      return run(this.allOptions() as Options, ...(this.processedArgs as Args))
    })
  }

  /** For `list help`, where the word can be no argument. */
  #isHelpWord(): boolean {
    return this.args.length === 1 && this.args[0] === 'help'
  }

  /** The options that arguments belong to which the command does not take; undefined if that is not known. */
  hintFor(words: readonly string[]): string | undefined {
    return strayHint(this, words, this.#line)
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
      const own = required && this.#isJoined(option, text) ? text.slice(1) : text
      const value = parseArg ? parseArg(own, before) : own
      const word = option.name().replace(/^no-/, '')
      if (this.#isGiven(name) && (before === false) !== negate)
        throw malformed(`--${word} cannot be used with --no-${word}`, 'Leave out one of them')
      if (required && !variadic && this.#isGivenUpTo(name))
        throw malformed(`${long} was given twice`, 'Leave out one of them')
      return value // commander replaces the undefined one of a switch
    }
    return super.addOption(option.argParser(parse))
  }

  /** Whether it is the value of `-o=json`, which commander takes for `=json`. */
  #isJoined({ short }: Option, text: string): boolean {
    return text.startsWith('=') && this.#line.some((word) => /^-\w/.test(word) && word.endsWith(`${short?.[1]}${text}`))
  }

  /** With a hint, and without commander's suggestion, which is too far from what was typed. */
  override error(message: string, { code }: { code?: string } = {}): never {
    const { args } = this
    const taken = this.registeredArguments.length
    if (code === 'commander.unknownOption') {
      const { option, value } = unknownOption(this)
      throw option === '--help' ? this.help() : optionError(this, option, value)
    }
    if (code === 'commander.unknownCommand') {
      // Which may be a token, or have a password.
      const isHidden = nameOf(this) === 'auth' || mayHaveSecret(args[0] ?? '')
      const what = isHidden ? 'Unknown command' : `Unknown command '${args[0]}'`
      throw malformed(what, commandHint(this, argumentsOf(args)) ?? helpOf(this))
    }
    if (code === 'commander.excessArguments') {
      if (taken === 0 && this.#isHelpWord()) this.help()
      const count = taken === 0 ? 'no arguments' : taken === 1 ? 'one argument' : `${taken} arguments`
      const what = `${nameOf(this)} takes ${count}, but got ${args.length}`
      throw malformed(what, this.hintFor(args.slice(taken)) ?? usageOf(this))
    }
    const sentence = message.replace('error: ', '')
    const what = sentence.charAt(0).toUpperCase() + sentence.slice(1)
    throw malformed(what, code === 'commander.missingArgument' ? (missingHint(this) ?? usageOf(this)) : helpOf(this))
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

/** The first one, and its value, which may be a secret. Commander leaves in `args` what it has not used. */
function unknownOption({ args }: Command): { option: string; value: string | undefined } {
  const [text = '', next] = new Command().parseOptions([...args]).unknown
  if (!text.startsWith('--')) return { option: Array.from(text).slice(0, 2).join(''), value: undefined }
  const [option = '', value = next] = text.split(/[=:\s]/, 2)
  return { option, value }
}

function optionError(command: Command, option: string, value: string | undefined): PlantsError {
  if (option === '--token' || option === '--password') {
    const what = `A ${option.slice(2)} is not accepted on the command line, where other users can see it`
    return malformed(what, inPlaceOf[option])
  }
  if (command.options.some(({ long }) => long === option)) return malformed(`${option} takes no value`, 'Leave it out')
  return malformed(`Unknown option ${option}`, optionHint(command, option, value) ?? helpOf(command))
}

/** Up to the first option, because the value of an unknown one may be a secret. */
function argumentsOf(args: readonly string[]): readonly string[] {
  const end = args.findIndex((word) => word.startsWith('-'))
  return end < 0 ? args : args.slice(0, end)
}

function usageOf(command: Command): string {
  return `Usage: plants ${nameOf(command)} ${command.usage()}. ${helpOf(command)}`
}

function helpOf(command: Command): string {
  return `See: plants ${`${nameOf(command)} --help`.trim()}`
}

/** Parses them alone, also in an invalid command line. */
export function parseGlobalOptions(argv: readonly string[]): GlobalOptions {
  const command = new Command()
    .exitOverride()
    .helpOption(false)
    .configureOutput({ outputError: () => undefined })
  for (const option of globalOptions()) command.addOption(option)
  try {
    command.parse(argv, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
  }
  const options: GlobalOptions = command.opts()
  return { ...options, ...(options.output !== undefined && { output: options.output.replace(/^=/, '') }) }
}

const inPlaceOf = {
  '--token': 'Set PLANTS_TOKEN, or save one with: plants auth login',
  '--password': `Set PGPASSWORD, or write it to ${passwordFile}`,
}
