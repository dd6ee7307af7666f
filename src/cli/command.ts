import { Command, Option } from 'commander'
import { outputFormats, parseChoice } from '../config/option-values.js'
import { settingNames, settingOf } from '../config/setting-table.js'
import { usageError } from '../errors.js'
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

export type CommandDefinition = (command: PlantsCommand) => void

/** The hint for options that exclude each other. */
export const leaveOut = 'Leave out one of them'

/** Commander's command, with examples, values that are given once, and our errors. */
export class PlantsCommand extends Command {
  /** Three at most. Help shows them below the usage. */
  examples: readonly string[] = []
  readonly #io: Io
  readonly #line: readonly string[]
  readonly #repeatable = new Set<Option>()

  /** @param line the whole command line */
  constructor(name: string | undefined, io: Io, line: readonly string[]) {
    super(name)
    this.#io = io
    this.#line = line
  }

  override createCommand(name?: string): PlantsCommand {
    return new PlantsCommand(name, this.#io, this.#line)
  }

  addExamples(...lines: string[]): this {
    this.examples = lines
    return this
  }

  /** The words of the command line behind the name of the program. */
  get words(): readonly string[] {
    return this.#line
  }

  /** An option whose value is parsed, and rejected with its name. */
  value<T>(
    flags: string,
    description: string,
    parse: (flag: string, text: string) => T,
    preset?: string,
  ): this {
    return this.#addParsed(new Option(flags, description), parse, preset)
  }

  /**
   * An option that may be repeated, with one value each time. `...` of commander would take the
   * arguments after it, too.
   *
   * @param parse receives what it returned for the values before
   */
  repeatableValue<T>(
    flags: string,
    description: string,
    parse: (flag: string, text: string, before: T | undefined) => T,
  ): this {
    const option = new Option(flags, description)
    this.#repeatable.add(option)
    const flag = option.long ?? option.flags
    return this.addOption(
      option.argParser((text, before) => parse(flag, text, before as T | undefined)),
    )
  }

  choice(flags: string, description: string, words: readonly string[], preset?: string): this {
    const option = new Option(flags, description).choices(words) // which completion offers
    return this.#addParsed(option, (flag, text) => parseChoice(flag, text, words), preset)
  }

  /** An argument that is one of these words. */
  choiceArgument(name: string, words: readonly string[], hint?: string): this {
    const argument = this.createArgument(`<${name}>`, words.join(', ')).choices(words)
    return this.addArgument(argument.argParser((text) => parseChoice(name, text, words, hint)))
  }

  #addParsed<T>(option: Option, parse: (flag: string, text: string) => T, preset?: string): this {
    const parser = (text: string) => parse(option.long ?? option.flags, text)
    if (preset !== undefined) option.default(parser(preset), preset)
    return this.addOption(option.argParser(parser))
  }

  /** @param run reads the options by the names that commander makes of their flags */
  handler<Options extends GlobalOptions, Args extends unknown[]>(
    run: (options: Options, io: Io, ...args: Args) => Promise<void>,
  ): this {
    return this.action(() =>
      run(this.allOptions() as Options, this.#io, ...(this.processedArgs as Args)),
    )
  }

  /** With the global options that stand before the name of the command. */
  allOptions(): GlobalOptions {
    const above = this.parent instanceof PlantsCommand ? this.parent.allOptions() : {}
    const own = Object.entries(this.opts()).filter(
      ([name]) => !(name in above) || this.getOptionValueSource(name) === 'cli',
    )
    return { ...above, ...Object.fromEntries(own) }
  }

  /** Commander accepts some mistakes. Each is rejected where its option is parsed. */
  override addOption(option: Option): this {
    if (option.negate) this.#rejectNegatedValue(option)
    if (!option.required) return super.addOption(option)
    const { parseArg } = option
    const parse = (text: string, before: unknown) => {
      this.#rejectRepetition(option)
      this.#rejectSwallowedFlag(option, text)
      const value = this.#removeEqualsSign(option, text)
      return parseArg ? parseArg(value, before) : value
    }
    return super.addOption(option.argParser(parse))
  }

  /**
   * Rejects `--tag shade --no-tag`. Commander has one name for both, so that its `conflicts` cannot
   * tell them apart.
   */
  #rejectNegatedValue(option: Option): void {
    const name = option.attributeName()
    this.on(`option:${option.name()}`, () => {
      if (typeof this.getOptionValue(name) === 'string')
        throw usageError(`${option.long} was given with --${name}`, leaveOut)
    })
  }

  /** Rejects `--name Fern --name Moss`, and `--no-tag --tag shade`. */
  #rejectRepetition(option: Option): void {
    const name = option.attributeName()
    const isGiven = this.getOptionValueSourceWithGlobals(name) === 'cli'
    if (!isGiven || option.variadic || this.#repeatable.has(option)) return
    const isNegated = this.getOptionValue(name) === false
    const how = isNegated ? `with --no-${name}` : 'twice'
    throw usageError(`${option.long} was given ${how}`, leaveOut)
  }

  /**
   * Rejects `plants create --name $UNSET --tag shade`. The shell removes an empty variable, and
   * commander takes the next option for the value.
   */
  #rejectSwallowedFlag({ long = '', short }: Option, text: string): void {
    const [flag] = text.split('=', 1)
    const isFlag = flag === '--help' || this.options.some((each) => each.long === flag)
    if (!isFlag) return
    // Short flags may be joined, such as -qn.
    const flags = RegExp(`^(?:${long}|-\\w*${short?.slice(1) ?? long})$`)
    const isWordOfItsOwn = this.#line.some(
      (word, index) => word === text && flags.test(this.#line[index - 1] ?? ''),
    )
    if (!isWordOfItsOwn) return
    const hint = `For such a value: ${long}=VALUE`
    throw usageError(`${long} needs a value, but ${flag} follows`, hint)
  }

  /** Takes `-o=json` for `json`. Commander would take it for `=json`. */
  #removeEqualsSign({ short }: Option, text: string): string {
    const isJoined = text.startsWith('=') && this.#line.includes(`${short}${text}`)
    return isJoined ? text.slice(1) : text
  }

  /** @param shown the long flags of those that help lists */
  addGlobalOptions(shown: readonly string[]): void {
    this.optionsGroup('Options:')
    for (const option of globalOptions()) {
      const { long = '' } = option
      if (this.options.some((own) => own.long === long)) continue
      this.addOption(option.hideHelp(!shown.includes(long)))
    }
    this.addHelpText('after', '\nGlobal options: plants --help')
  }

  /** Commander prints its sentences; ours are printed where all errors are. */
  override error(message: string, { code = '' }: { code?: string } = {}): never {
    throw new RejectedLine(this, code, message)
  }
}

/** A command line that commander does not accept. `explainRejectedLine` says it in our words. */
export class RejectedLine extends Error {
  readonly command: PlantsCommand
  readonly code: string

  constructor(command: PlantsCommand, code: string, message: string) {
    super(message)
    this.command = command
    this.code = code
  }
}

export function isNamed(command: Command, word: string): boolean {
  return command.name() === word || command.aliases().includes(word)
}

/** Such as `stores add`; empty for the program. */
export function findFullName(command: Command): string {
  return command.parent ? `${findFullName(command.parent)} ${command.name()}`.trim() : ''
}

export function globalOptions(): Option[] {
  const ofSettings = settingNames.flatMap((name) => {
    const { flags, meaning } = settingOf(name)
    if (flags === undefined) return []
    const option = new Option(flags, meaning)
    // Completion offers them. The value is parsed with the settings.
    if (name === 'output') option.argChoices = [...outputFormats]
    return [option]
  })
  return [
    ...ofSettings,
    new Option('-v, --verbose', 'log requests and responses on stderr'),
    new Option('-q, --quiet', 'print only results and errors'),
    new Option('--no-input', 'never prompt, and start no pager'),
    new Option('--no-color', 'no colours'),
  ]
}

/** Whether a person may be there, to answer a question or to quit a pager. */
export function mayWaitForPerson({ input }: GlobalOptions, { env }: Io): boolean {
  const isUnset = (name: string) => ['', '0', 'false'].includes(env[name]?.toLowerCase() ?? '')
  return input !== false && isUnset('PLANTS_NO_INPUT') && isUnset('CI')
}
