import { type Argument, Command, CommanderError, type Help, type Option } from 'commander'
import { version } from '../../../package.json'
import { flagOf } from '../../config/setting-table.js'
import { malformed } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { commonFormats, parseChoice, type Values } from '../../platform/values.js'
import { groups, topics } from '../commands/index.js'
import {
  aliases,
  type CommandDefinition,
  type GlobalFlags,
  globalOptions,
  type OptionDefinition,
} from '../define-command.js'
import { pageStyle, programPage } from '../help/program-page.js'

const listed = Object.assign({}, ...Object.values(groups)) as (typeof groups)[string]

/** Commander's commands, and what one parsing of a command line has found. */
export class Program {
  readonly root = new Command('plants')
  readonly helpOption = this.root.createOption('-h, --help', 'show this help')
  /** the command at which commander stopped */
  command = this.root
  /** long flags, by the names of their values: `--no-tag` by `tag` */
  readonly given = new Map<string, string>()
  /** the help or the version that was asked for */
  page = ''
  /** of the loaded commands */
  readonly definitions = new Map<Command, CommandDefinition>()
  /** for shell completion */
  readonly values = new Map<Option | Argument, Values>()
  readonly #io: Io
  #argv: string[] = []

  /** @param first the first word of a command line: of a command, only its own options can follow */
  constructor(io: Io, first = 'help') {
    this.#io = io
    const write = (text: string) => {
      this.page += text
    }
    const style = () => pageStyle({ color: !this.given.has('color') }, io)
    const width = () => style().width
    const hasColors = () => style().isColored
    this.root
      .enablePositionalOptions() // otherwise the value in `create --name -s` would be an option
      .exitOverride(this.#stopAt(this.root))
      .addHelpOption(this.helpOption)
      .configureOutput({
        writeOut: write,
        writeErr: write,
        outputError: () => undefined,
        getOutHelpWidth: width,
        getErrHelpWidth: width,
        getOutHasColors: hasColors,
        getErrHasColors: hasColors,
      })
      .configureHelp({
        minWidthToWrap: 20,
        styleTitle: (text) => style().styleTitle(text),
        optionTerm: ({ short, flags }) => (short === undefined ? `    ${flags}` : flags),
        subcommandTerm: (command) => `${command.name()} ${command.usage()}`.replace(/ ?\[options\]/, ''),
      })
      .version(version, '-V, --version', 'show the version')
      .hook('preSubcommand', (_, command) => this.load(command))
    const isOnly = first !== 'help' && Object.hasOwn(listed, first)
    for (const option of isOnly ? [] : globalOptions) this.#addOption(this.root, option)
    for (const [name, [summary]] of Object.entries(listed))
      if (!isOnly || name === first) this.#addCommand(this.root, name).summary(summary)
    const formatHelp = (_: Command, { helpWidth = 80, styleTitle }: Help) => programPage(helpWidth, styleTitle)
    this.root.configureHelp({ ...this.root.configureHelp(), formatHelp }) // which commands do not inherit any more
  }

  /** Runs a command line, or sets `page`. Throws `CommanderError` for an invalid one. */
  async parse(argv: string[]): Promise<void> {
    this.#argv = argv
    const words = argv.filter((word) => !word.startsWith('-'))
    const isHelp = words.length > 0 && /^(-h|--help)$/.test(argv[0] ?? '') // before a command, it is the help of that
    try {
      await this.root.parseAsync(isHelp ? ['help', ...words] : argv, { from: 'user' })
    } catch (error) {
      if (!(error instanceof CommanderError)) throw error
      const isOfGroup = error.code === 'commander.help' && this.command !== this.root
      if (error.exitCode !== 0 && !isOfGroup) throw error
    }
  }

  async load(command: Command): Promise<void> {
    if (command.parent !== this.root || this.definitions.has(command)) return
    const [, load] = listed[command.name()] ?? []
    this.#define(command, (await load?.()) ?? this.#helpCommand())
  }

  async #showHelp(words: string[]): Promise<void> {
    const [topic] = words
    if (words.length === 1 && isTopic(topic)) {
      const { topicPages } = await import('../help/topic-pages.js')
      const help = this.root.createHelp()
      help.prepareContext({ helpWidth: pageStyle({}, this.#io).width })
      this.page = topicPages[topic](help, this.root)
      return
    }
    let command = this.root
    for (const word of words) {
      const below = subcommandOf(command, word)
      if (!below) {
        command.args = [word]
        return command.error('', { code: 'commander.unknownCommand' })
      }
      await this.load(below)
      command = below
    }
    command.help()
  }

  #helpCommand(): CommandDefinition {
    return {
      name: 'help',
      description: `Show the help of a command, or of a topic: ${Object.keys(topics).join(', ')}.`,
      arguments: [{ name: '[words...]', description: 'the name of a command or of a topic' }],
      examples: ['plants help create', 'plants help stores add', 'plants help exit-codes'],
      run: async ({ args }) => this.#showHelp(args),
    }
  }

  #addCommand(parent: Command, name: string): Command {
    const command = parent.command(name).aliases(aliases[name] ?? [])
    return command.exitOverride(this.#stopAt(command))
  }

  #define(command: Command, definition: CommandDefinition): void {
    const { description, arguments: args = [], options = [], formats = commonFormats, commands, run } = definition
    this.definitions.set(command, definition)
    command.description(description)
    for (const { name, description, parse, values } of args) {
      const argument = command.createArgument(name, description)
      if (parse) argument.argParser((text: string) => parse(argument.name(), text))
      if (values) this.values.set(argument, values)
      command.addArgument(argument)
    }
    for (const option of options) this.#addOption(command, option)
    command.optionsGroup('')
    const listed = definition.settings?.map(flagOf) ?? []
    for (const definition of globalOptions) {
      const option = this.#addOption(command, definition).hideHelp(!listed.includes(longFlag(definition)))
      if (run && option.long === flagOf('output')) this.values.set(option, formats)
    }
    if (commands) command.usage('<command> [options]').helpCommand('help [command]', 'show help for a command')
    for (const below of commands ?? []) this.#define(this.#addCommand(command, below.name), below)
    command.addHelpText('after', () => this.#helpAfter(definition))
    if (run)
      command.action(() => run({ args: command.processedArgs.flat(), flags: flagsOf(command), formats }, this.#io))
  }

  /** Without `.choices()`, whose error has no fields for the option and the value. */
  #addOption(command: Command, definition: OptionDefinition): Option {
    const { flags, description, group, choices, values = choices, parse, conflicts, default: text } = definition
    const { isRepeatable = false } = definition
    if (group) command.optionsGroup(`${group}:`)
    const option = command.createOption(flags, description)
    const flag = longFlag(definition)
    const read = parse ?? (choices && ((name: string, value: string) => parseChoice(name, value, choices)))
    if (read && isRepeatable)
      option.argParser((value: string, before: unknown[] = []) => [...before, ...[read(flag, value)].flat()])
    else if (read) option.argParser((value: string) => read(flag, value))
    if (text !== undefined) option.default(read ? read(flag, text) : text, text)
    if (conflicts) option.conflicts([...conflicts])
    if (values) this.values.set(option, values)
    command.addOption(option).on(`option:${option.name()}`, (value) => this.#note(option, flag, value, isRepeatable))
    return option
  }

  /** Throws `malformed` for a second value of an option, and for `--dry-run` as a value. */
  #note(option: Option, flag: string, value: unknown, isRepeatable: boolean): void {
    if (value === '--dry-run' && this.#argv.includes(value))
      throw malformed(`${flag} needs a value, but --dry-run follows`, `For this value: ${flag}=--dry-run`)
    const before = this.given.get(option.attributeName())
    if (before === flag && option.required && !isRepeatable)
      throw malformed(`${flag} was given twice`, 'Leave out one of them')
    if (before !== undefined && before !== flag)
      throw malformed(`${before} cannot be used with ${flag}`, 'Leave out one of them')
    this.given.set(option.attributeName(), flag)
  }

  #stopAt(command: Command) {
    return (error: CommanderError): never => {
      this.command = command
      throw error
    }
  }

  #helpAfter({ notes = [], examples = [] }: CommandDefinition): string {
    const style = this.root.createHelp().styleTitle
    const sections = examples.length > 0 ? [...notes, { title: 'Examples', lines: examples }] : notes
    const texts = sections.map(
      ({ title, lines }) => `${style(`${title}:`)}\n${lines.map((line) => `  ${line}\n`).join('')}\n`,
    )
    return `\n${texts.join('')}${style('Global options:')} plants help options`
  }
}

/** Also of an invalid command line, whose error is printed as they say. */
export function globalFlagsIn(argv: string[]): GlobalFlags {
  const command = new Command().exitOverride().configureOutput({ outputError: () => undefined })
  for (const { flags } of globalOptions) command.option(flags)
  try {
    command.parseOptions(argv)
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
  }
  return command.opts()
}

export function subcommandOf(command: Command, word: string): Command | undefined {
  return command.commands.find((below) => below.name() === word || below.aliases().includes(word))
}

function isTopic(word = ''): word is keyof typeof topics {
  return Object.hasOwn(topics, word)
}

/** Some options can stand before the name of the command. */
function flagsOf(command: Command): GlobalFlags {
  const above = command.parent ? flagsOf(command.parent) : {}
  const isOwn = (name: string) => !(name in above) || command.getOptionValueSource(name) === 'cli'
  return { ...above, ...Object.fromEntries(Object.entries(command.opts()).filter(([name]) => isOwn(name))) }
}

function longFlag({ flags }: OptionDefinition): string {
  return /--[\w-]+/.exec(flags)?.[0] ?? flags
}
