import { existsSync } from 'node:fs'
import { Command, CommanderError, type HelpContext, Option } from 'commander'
import { choiceIn, outputFormats, parseChoice } from '../config/option-values.js'
import { defaultOf, settingNames, settingOf, settingsIn } from '../config/setting-table.js'
import { type ColorChoice, colorChoices } from '../output/output.js'
import { must, usageError } from '../platform/errors.js'
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
  color?: ColorChoice | false
}

/** Declares the options and the handler of a command. */
export type Define = (command: PlantsCommand, io: Io) => void

/** Commander's command, with examples, our errors, and option values that are given once. */
export class PlantsCommand extends Command {
  /** Three at most. */
  examples: readonly string[] = []
  /** As they are, because some lines are shell commands. */
  notes: readonly { title: string; lines: readonly string[] }[] = []

  /** The whole command line. */
  readonly line: readonly string[]
  #load: (() => Promise<Define>) | undefined
  #io: Io | undefined

  constructor(name?: string, line: readonly string[] = []) {
    super(name)
    this.line = line
  }

  override createCommand(name?: string): PlantsCommand {
    return new PlantsCommand(name, this.line)
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
    for (const each of [this, ...this.commands]) if (each instanceof PlantsCommand) each.#io = io
    if (this.commands.length > 0)
      this.usage('<command> [options]').helpCommand('help [command]', 'show help for a command')
    for (const each of [this, ...this.commands])
      if (each instanceof PlantsCommand) each.#addCommonParts()
  }

  /** The global options, of which the help of a command has the most used ones, and the end of its help. */
  #addCommonParts(): void {
    this.optionsGroup('Options:')
    for (const option of globalOptions()) {
      const { long = '' } = option
      option.description = listedMeanings[long] ?? option.description
      if (!this.options.some((each) => each.long === long))
        this.addOption(option.hideHelp(!(long in listedMeanings)))
    }
    const { notes, examples } = this
    const sections =
      examples.length > 0 ? [...notes, { title: 'Examples', lines: examples }] : notes
    const texts = sections.map(
      ({ title, lines }) => `${title}:\n${lines.map((line) => `  ${line}\n`).join('')}\n`,
    )
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
  value<T>(
    flags: string,
    description: string,
    parse: (flag: string, text: string) => T,
    preset?: string,
  ): this {
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
    return this.addOption(
      option.argParser((text) => parseChoice(option.long ?? flags, text, words, hintFor(text))),
    )
  }

  /** An option that has other flags, too, which help does not list: those of other programs. */
  alsoAs(flags: string, long: string): this {
    return this.addOption(
      new OtherFlags(flags, must(this.options.find((each) => each.long === long))),
    )
  }

  /** @param run reads the options by the names that commander makes of their flags */
  handler<Options extends GlobalOptions, Args extends unknown[]>(
    run: (options: Options, ...args: Args) => Promise<void>,
  ): this {
    return this.action(() => {
      if (this.isHelpWord()) this.help()
      return run(this.allOptions() as Options, ...(this.processedArgs as Args))
    })
  }

  /** For `list help`, unless the word is an argument: a file that exists, or a name that people choose. */
  isHelpWord(): boolean {
    if (this.args.length !== 1 || this.args[0] !== 'help') return false
    const [argument] = this.registeredArguments
    const name = argument?.name() ?? ''
    if (name === 'file' || name === 'files')
      return !existsSync(this.#io?.resolvePath('help') ?? 'help')
    return argument === undefined || name === 'id' || name === 'setting'
  }

  /** Of all stores. Hints ask here, so that they need no other file for it. */
  isSetting(word: string): boolean {
    return settingsIn('user').some((name) => name === word)
  }

  /** With the global options that stand before the name of the command. */
  allOptions(): GlobalOptions {
    const above = this.parent instanceof PlantsCommand ? this.parent.allOptions() : {}
    const own = Object.entries(this.opts()).filter(
      ([name]) => !(name in above) || this.#isGiven(name),
    )
    return { ...above, ...Object.fromEntries(own) }
  }

  #isGiven(name: string): boolean {
    return this.getOptionValueSource(name) === 'cli'
  }

  /** Whether it is an option of this command, or of one above, that was given. */
  #isGivenUpTo(name: string): boolean {
    return (
      this.#isGiven(name) ||
      (this.parent instanceof PlantsCommand && this.parent.#isGivenUpTo(name))
    )
  }

  /**
   * Throws `usage` for a second value, for an option and its opposite, and for a long option in the place of a value,
   * which an empty variable of a shell leaves there.
   */
  override addOption(option: Option): this {
    const { negate, parseArg, required, optional, variadic } = option
    const name = option.attributeName()
    const long = option.long ?? `--${name}`
    const parse = (text: string, before: unknown) => {
      const flag = required ? text.split('=', 1)[0] : undefined
      if (required && this.options.some((each) => each.long === flag) && this.line.includes(text))
        throw usageError(
          `${long} needs a value, but ${flag} follows`,
          `For such a value: ${long}=VALUE`,
        )
      const own = required && this.#isJoined(option, text) ? text.slice(1) : text
      const value = parseArg ? parseArg(own, before) : own
      const word = option.name().replace(/^no-/, '')
      if (this.#isGiven(name) && (before === false) !== negate)
        throw usageError(`--${word} cannot be used with --no-${word}`, 'Leave out one of them')
      const isValue = required || (optional && value !== before) // --color is a switch, too
      if (isValue && !variadic && this.#isGivenUpTo(name))
        throw usageError(`${long} was given twice`, 'Leave out one of them')
      return value // commander replaces the undefined one of a switch
    }
    return super.addOption(option.argParser(parse))
  }

  /** Whether it is the value of `-o=json`, which commander takes for `=json`. */
  #isJoined({ short }: Option, text: string): boolean {
    return (
      text.startsWith('=') &&
      this.line.some((word) => /^-\w/.test(word) && word.endsWith(`${short?.[1]}${text}`))
    )
  }

  /** Throws for an unknown command, whose help would be that of the commands above. */
  override helpInformation(context?: HelpContext): string {
    const [word = '-'] = this.args[0] === 'help' ? this.args.slice(1) : this.args // for `stores help add`
    const isKnown = word.startsWith('-') || this.commands.some((each) => isNamed(each, word))
    if (this.commands.length > 0 && !isKnown) this.error('', { code: 'commander.unknownCommand' })
    return super.helpInformation(context)
  }

  /** Without commander's suggestion, which is too far from what was typed. */
  override error(message: string, { code }: { code?: string } = {}): never {
    throw new RejectedLine(this, code, message)
  }
}

/** A command line that commander does not accept. Its message is loaded with `usageError`. */
export class RejectedLine extends Error {
  readonly command: PlantsCommand
  readonly code: string | undefined

  constructor(command: PlantsCommand, code: string | undefined, message: string) {
    super(message)
    this.command = command
    this.code = code
  }
}

/** Sets the value of another option. Neither help nor completion lists it. */
export class OtherFlags extends Option {
  readonly #of: Option

  constructor(flags: string, of: Option) {
    super(of.required ? of.flags.replace(/^.*(?= <)/, flags) : flags, of.description)
    this.#of = of
    if (of.parseArg) this.argParser(of.parseArg)
    this.hideHelp()
  }

  override attributeName(): string {
    return this.#of.attributeName()
  }
}

/** By its name, or by another one. */
export function isNamed(command: Command, word: string): boolean {
  return command.name() === word || command.aliases().includes(word)
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
    const option = new Option(
      flags,
      isSwitch ? meaning : `${meaning}; by default ${defaultOf(name)}`,
    )
    // For shells. It is parsed with the settings.
    return name === 'output'
      ? option.choices(outputFormats).argParser((text) => choiceIn(outputFormats, text) ?? text)
      : option
  })
  const verbose = new Option(
    '-v, --verbose',
    'log settings and their sources, requests and responses on stderr',
  )
  return [
    ...ofSettings,
    verbose,
    new OtherFlags('--debug', verbose),
    new Option(
      '-q, --quiet',
      'print only results and errors: no confirmations, warnings or progress',
    ),
    new Option('--no-input', 'never prompt, and start no pager; also PLANTS_NO_INPUT and CI'),
    new Option(
      '--color [when]',
      'colours: by default auto, without a value always; also FORCE_COLOR',
    )
      .choices(colorChoices)
      .preset('always')
      .argParser((text) =>
        parseChoice('--color', text, colorChoices, 'For example: --color always'),
      ),
    new Option('--no-color', 'no colours; also NO_COLOR'),
  ]
}

/** Parses them alone, also in an invalid command line. */
export function parseGlobalOptions(argv: readonly string[]): GlobalOptions {
  const command = new Command()
    .exitOverride()
    .helpOption(false)
    .configureOutput({ outputError: () => undefined })
  for (const option of globalOptions())
    command.addOption(option.required || option.optional ? option.argParser(String) : option)
  try {
    command.parse(argv, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
  }
  const options: GlobalOptions = command.opts()
  return {
    ...options,
    ...(options.output !== undefined && { output: options.output.replace(/^=/, '') }),
  }
}
