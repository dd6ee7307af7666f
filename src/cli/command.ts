import { Command, Option } from 'commander'
import { choiceIn, outputFormats, parseChoice } from '../config/option-values.js'
import { defaultOf, settingNames, settingOf } from '../config/setting-table.js'
import { usageError } from '../platform/errors.js'
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

/** Declares the arguments, the options and the action of a command. */
export type CommandDefinition = (command: PlantsCommand, io: Io) => void

/** Commander's command, with examples, values that are given once, and our errors. */
export class PlantsCommand extends Command {
  /** Three at most. Help shows them below the usage. */
  examples: readonly string[] = []
  /** The whole command line. */
  readonly line: readonly string[]

  constructor(name: string | undefined, line: readonly string[]) {
    super(name)
    this.line = line
  }

  override createCommand(name?: string): PlantsCommand {
    return new PlantsCommand(name, this.line)
  }

  addExamples(...lines: string[]): this {
    this.examples = lines
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
  choice(flags: string, description: string, words: readonly string[], preset?: string): this {
    const option = new Option(flags, description).choices(words)
    if (preset !== undefined) option.default(preset)
    return this.addOption(
      option.argParser((text) => parseChoice(option.long ?? flags, text, words)),
    )
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
    const own = Object.entries(this.opts()).filter(
      ([name]) => !(name in above) || this.getOptionValueSource(name) === 'cli',
    )
    return { ...above, ...Object.fromEntries(own) }
  }

  /** A value is given once, and a long option is none: an empty variable of a shell leaves it there. */
  override addOption(option: Option): this {
    const { long = '', short, required, variadic, parseArg } = option
    if (!required) return super.addOption(option)
    const parse = (text: string, before: unknown) => {
      const isGiven = this.getOptionValueSourceWithGlobals(option.attributeName()) === 'cli'
      if (isGiven && !variadic) throw usageError(`${long} was given twice`, 'Leave out one of them')
      const flag = text.split('=', 1)[0]
      if (this.options.some((each) => each.long === flag) && this.line.includes(text))
        throw usageError(
          `${long} needs a value, but ${flag} follows`,
          `For such a value: ${long}=VALUE`,
        )
      // Commander takes `-o=json` for `=json`.
      const isJoined = text.startsWith('=') && this.line.includes(`${short}${text}`)
      const value = isJoined ? text.slice(1) : text
      return parseArg ? parseArg(value, before) : value
    }
    return super.addOption(option.argParser(parse))
  }

  /** The global options, of which help shows two, at the end. */
  addGlobalOptions(): void {
    this.optionsGroup('Options:')
    for (const option of globalOptions()) {
      if (this.options.some(({ long }) => long === option.long)) continue
      const meaning = shownMeanings[option.long ?? '']
      if (meaning !== undefined) option.description = meaning
      this.addOption(option.hideHelp(meaning === undefined))
    }
    this.addHelpText('after', '\nGlobal options: plants help options')
  }

  /** Commander prints its sentences; ours are printed where all errors are. */
  override error(message: string, { code = '' }: { code?: string } = {}): never {
    throw new RejectedLine(this, code, message)
  }
}

/** Of the global options in the help of each command. */
const shownMeanings: Readonly<Record<string, string>> = {
  '--store': 'store: a saved name, a path or an address',
  '--output': 'output format; csv and tsv for plants',
}

/** A command line that commander does not accept. `usageErrorOf` says it in our words. */
export class RejectedLine extends Error {
  readonly command: PlantsCommand
  readonly code: string

  constructor(command: PlantsCommand, code: string, message: string) {
    super(message)
    this.command = command
    this.code = code
  }
}

/** By its name, or by another one. */
export function isNamed(command: Command, word: string): boolean {
  return command.name() === word || command.aliases().includes(word)
}

/** Such as `stores add`; empty for the program. */
export function nameOf(command: Command): string {
  return command.parent ? `${nameOf(command.parent)} ${command.name()}`.trim() : ''
}

export function globalOptions(): Option[] {
  const ofSettings = settingNames.flatMap((name) => {
    const { flags, meaning } = settingOf(name)
    if (flags === undefined) return []
    const isSwitch = !flags.includes('<')
    const description = isSwitch ? meaning : `${meaning}; by default ${defaultOf(name)}`
    const option = new Option(flags, description)
    // The words are for completion. The value is parsed with the settings.
    if (name === 'output')
      option.choices(outputFormats).argParser((text) => choiceIn(outputFormats, text) ?? text)
    return [option]
  })
  return [
    ...ofSettings,
    new Option('-v, --verbose', 'log requests and responses on stderr'),
    new Option(
      '-q, --quiet',
      'print only results and errors: no confirmations, warnings or progress',
    ),
    new Option('--no-input', 'never prompt, and start no pager; also PLANTS_NO_INPUT and CI'),
    new Option('--no-color', 'no colours; also NO_COLOR'),
  ]
}

/** Whether a person may be there, to answer a question or to quit a pager. */
export function mayWaitForPerson({ input }: GlobalOptions, { env }: Io): boolean {
  const isUnset = (name: string) => ['', '0', 'false'].includes(env[name]?.toLowerCase() ?? '')
  return input !== false && isUnset('PLANTS_NO_INPUT') && isUnset('CI')
}
