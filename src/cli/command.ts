import { Command, Help, Option, type ParseOptionsResult } from 'commander'
import { type OutputFormat, parseChoice } from '../config/option-values.js'
import { createUsageError } from '../errors.js'
import type { Io } from '../platform/io.js'
import { findEndOfOptions } from './command-names.js'
import { createGlobalOptions, type GlobalOptions } from './global-options.js'

/** The state of one command line, which the program and its subcommands share. */
export interface CommandLine {
  readonly argv: readonly string[]
  /** The command whose options were parsed last. */
  command?: PlantsCommand
  /** The command whose help the line asks for. */
  describedCommand?: PlantsCommand
}

export type CommandDefinition = (command: PlantsCommand) => void

interface ChoiceOptions {
  defaultValue?: string
  /** What to do instead of a value that is none of the choices. */
  hint?: string
}

/**
 * A command line that commander rejects. `explainCommandLineError` converts it to a `PlantsError`.
 */
export class CommandLineError extends Error {
  constructor(
    readonly command: PlantsCommand,
    readonly code: string,
    message: string,
  ) {
    super(message)
  }
}

/** The hint for options that exclude each other. */
export const leaveOutHint = 'Leave one of them out'

/**
 * A command of commander. It adds examples to the help, and throws errors instead of printing them.
 * It also rejects mistakes that commander accepts, and that would do harm in silence: a long option
 * with one hyphen, an option that is given twice, an equals sign after a short option, and a flag
 * that is taken for the value of the option before it, because a variable of the shell was empty.
 */
export class PlantsCommand extends Command {
  #examples: readonly string[] = []
  readonly #repeatableOptions = new Set<Option>()

  constructor(
    name: string | undefined,
    private readonly io: Io,
    private readonly line: CommandLine,
  ) {
    super(name)
  }

  override createCommand(name?: string): PlantsCommand {
    return new PlantsCommand(name, this.io, this.line)
  }

  override createHelp(): CommandHelp {
    return new CommandHelp()
  }

  addExamples(...lines: string[]): this {
    this.#examples = lines
    return this
  }

  /** The lines that help shows as examples. By default, they are those of the subcommands. */
  get examples(): readonly string[] {
    if (this.#examples.length > 0) return this.#examples
    return (this.commands as readonly PlantsCommand[]).flatMap(({ examples }) => examples)
  }

  /** The words of the command line after the name of the program. */
  get argv(): readonly string[] {
    return this.line.argv
  }

  /**
   * Adds an option whose value is parsed.
   *
   * @param parse receives the long flag, such as `--limit`, for the error of a wrong value
   */
  value<T>(
    flags: string,
    description: string,
    parse: (flag: string, text: string) => T,
    defaultValue?: string,
  ): this {
    return this.#addParsed(new Option(flags, description), parse, defaultValue)
  }

  /**
   * Adds an option that may be repeated, with one value each time. A variadic option of commander
   * (`<value...>`) would also take the arguments that follow.
   *
   * @param parse receives what it has returned for the values before this one
   */
  repeatableValue<T>(
    flags: string,
    description: string,
    parse: (flag: string, text: string, previousValue: T | undefined) => T,
  ): this {
    const option = new Option(flags, description)
    this.#repeatableOptions.add(option)
    const flag = option.long ?? option.flags
    return this.addOption(
      option.argParser((text, previousValue) => parse(flag, text, previousValue as T | undefined)),
    )
  }

  /** Adds an option whose value is one of the choices. */
  choice(
    flags: string,
    description: string,
    choices: readonly string[],
    { defaultValue, hint }: ChoiceOptions = {},
  ): this {
    // Completion offers the choices. The parser that commander adds with them is replaced below,
    // because it rejects JSON for json.
    const option = new Option(flags, description).choices(choices)
    const parse = (flag: string, text: string) => parseChoice(flag, text, choices, hint)
    return this.#addParsed(option, parse, defaultValue)
  }

  /** Adds an argument that is one of the choices. */
  choiceArgument(name: string, description: string, choices: readonly string[]): this {
    const argument = this.createArgument(`<${name}>`, description).choices(choices)
    return this.addArgument(argument.argParser((text) => parseChoice(`The ${name}`, text, choices)))
  }

  #addParsed<T>(
    option: Option,
    parse: (flag: string, text: string) => T,
    defaultValue?: string,
  ): this {
    const parser = (text: string) => parse(option.long ?? option.flags, text)
    if (defaultValue !== undefined) option.default(parser(defaultValue), defaultValue)
    return this.addOption(option.argParser(parser))
  }

  /**
   * Sets the function that runs the command.
   *
   * @param run receives the options under the names that commander makes of their flags, such as
   *   `dryRun` for `--dry-run`
   */
  handler<Options extends GlobalOptions, Args extends unknown[]>(
    run: (options: Options, io: Io, ...args: Args) => Promise<void>,
  ): this {
    return this.action(() =>
      run(this.readOptions() as Options, this.io, ...(this.processedArgs as Args)),
    )
  }

  override parseOptions(argv: string[]): ParseOptionsResult {
    this.line.command = this
    this.#rejectSingleHyphens(argv)
    return super.parseOptions(argv)
  }

  /**
   * Rejects `-store=a.db`, in which commander would find the option `-s` with the value
   * `tore=a.db`. Arguments after `--` are no options.
   */
  #rejectSingleHyphens(argv: readonly string[]): void {
    const names = ['--help', ...this.options.map(({ long }) => long ?? '')]
    for (const argument of argv.slice(0, findEndOfOptions(argv))) {
      const name = `-${argument.replace(/=.*/s, '')}`
      if (names.includes(name))
        throw createUsageError(
          `The option ${name} has only one hyphen`,
          `Write each long option with two hyphens: ${name}`,
        )
    }
  }

  override outputHelp(): void {
    this.line.describedCommand = this
    super.outputHelp()
  }

  /** Returns the options of the command line, before and after the name of the command. */
  readOptions(): GlobalOptions {
    const { parent } = this
    if (!(parent instanceof PlantsCommand)) return this.opts()
    const earlierOptions = Object.entries(parent.readOptions()).filter(([key]) =>
      parent.#isOnCommandLine(key),
    )
    return { ...this.opts(), ...Object.fromEntries(earlierOptions) }
  }

  /** Adds an option, and rejects mistakes in its use that commander would accept. */
  override addOption(option: Option): this {
    if (option.negate) this.#listenForNegation(option)
    const takesValue = option.required // In commander, `required` is about the value of an option.
    if (!takesValue) return super.addOption(option)
    const { parseArg } = option
    const parse = (text: string, previousValue: unknown) => {
      this.#rejectRepetition(option)
      this.#rejectSwallowedFlag(option, text)
      this.#rejectEqualsSign(option, text)
      return parseArg ? parseArg(text, previousValue) : text
    }
    return super.addOption(option.argParser(parse))
  }

  /**
   * Rejects `--tag shade --no-tag` when commander comes to the negation. For commander, both are
   * the option `tag`, so its `conflicts` cannot tell them apart.
   */
  #listenForNegation(option: Option): void {
    const name = option.attributeName()
    this.on(`option:${option.name()}`, () => {
      if (typeof this.getOptionValue(name) === 'string')
        throw createUsageError(`${option.long} cannot be used with --${name}`, leaveOutHint)
    })
  }

  /** Rejects `--name Fern --name Moss`, and `--no-tag --tag shade`. */
  #rejectRepetition(option: Option): void {
    const name = option.attributeName()
    const mayRepeat = option.variadic || this.#repeatableOptions.has(option)
    if (mayRepeat || !this.#isOnCommandLine(name)) return
    const isNegated = this.getOptionValue(name) === false
    const problem = isNegated ? `cannot be used with --no-${name}` : 'was given twice'
    throw createUsageError(`${option.long} ${problem}`, leaveOutHint)
  }

  /** Whether the command line has the option, after the command or before its name. */
  #isOnCommandLine(key: string): boolean {
    const { parent } = this
    if (this.getOptionValueSource(key) === 'cli') return true
    return parent instanceof PlantsCommand && parent.#isOnCommandLine(key)
  }

  /**
   * Rejects `plants create --name $UNSET --tag shade`. The shell removes an empty variable, and
   * commander takes `--tag` for the name. `--name=--tag` is accepted, because nobody writes that by
   * mistake.
   */
  #rejectSwallowedFlag({ long, short }: Option, text: string): void {
    const [flag = ''] = text.split('=', 1)
    const isFlag = this.options.some((option) => option.long === flag || option.short === flag)
    const isJoined = this.#hasWord(`${long}=${text}`, `${short}${text}`)
    if (isJoined || !(isFlag || flag === '--help')) return
    const hint = `If that is the value, write: ${long}=VALUE`
    throw createUsageError(`${long} needs a value, but ${flag} follows`, hint)
  }

  /**
   * Rejects `-n=Fern`, which getopt and commander read as the value `=Fern`, and many other
   * programs as `Fern`. The option may be the last of several letters: `-qn=Fern`.
   */
  #rejectEqualsSign({ short, long }: Option, text: string): void {
    // In `-n =Fern` and `--name==Fern`, the sign is a part of the value.
    if (!text.startsWith('=') || this.#hasWord(text, `${long}=${text}`)) return
    const hint = `Write ${short} VALUE, or ${long}=VALUE`
    throw createUsageError(`An equals sign follows ${short}`, hint)
  }

  #hasWord(...words: readonly string[]): boolean {
    return words.some((word) => this.argv.includes(word))
  }

  /**
   * Adds the global options to a command, except those that it has itself.
   *
   * @param visibleFlags the long flags of the options that the help of the command lists
   * @param formats the formats that the command prints
   */
  addGlobalOptions(visibleFlags: readonly string[], formats: readonly OutputFormat[]): void {
    this.optionsGroup('Options:')
    for (const option of createGlobalOptions(formats)) {
      const { long = '' } = option
      if (this.options.some((ownOption) => ownOption.long === long)) continue
      this.addOption(option.hideHelp(!visibleFlags.includes(long)))
    }
  }

  /**
   * Throws an error that commander would print. `run` prints all errors of the program.
   */
  override error(message: string, { code = '' }: { code?: string } = {}): never {
    throw new CommandLineError(this, code, message)
  }
}

interface DescribedCommand extends Command {
  readonly examples: readonly string[]
}

/** Formats help as gh does: the description first, and options below subcommands. */
class CommandHelp extends Help {
  override minWidthToWrap = 20

  override formatHelp(command: DescribedCommand, help: Help): string {
    const sections = super.formatHelp(command, help).trimEnd().split('\n\n')
    const [usage = '', description = '', ...lists] = sections
    const wrapCommandLine = (line: string) =>
      this.boxWrap(line, (this.helpWidth ?? 80) - 4).replaceAll('\n', '\n    ')
    const examples = ['Examples:', ...command.examples.map((line) => wrapCommandLine(`  ${line}`))]
    const isLast = (list: string) => command.commands.length > 0 && list.startsWith('Options:')
    const orderedSections = [
      description,
      wrapCommandLine(usage),
      ...(examples.length > 1 ? [examples.join('\n')] : []),
      ...lists.filter((list) => !isLast(list)),
      ...lists.filter(isLast),
    ]
    return `${orderedSections.join('\n\n')}\n`
  }

  /** Formats the usage of a command with all of its aliases. Commander lists one of them. */
  override commandUsage(command: Command): string {
    const names = [command.name(), ...command.aliases()]
    return super.commandUsage(command).replace(names.slice(0, 2).join('|'), names.join('|'))
  }

  /** Formats a line of the list of subcommands, such as `add <name> <address>`, without [options]. */
  override subcommandTerm(command: Command): string {
    return `${command.name()} ${command.usage().replace(/\[options\] ?/, '')}`.trimEnd()
  }

  /** The description of --output has its choices, which commander would write on another line. */
  override optionDescription(option: Option): string {
    return option.long === '--output' ? option.description : super.optionDescription(option)
  }
}
