import { styleText } from 'node:util'
import { type Argument, Command, CommanderError, type Help, type Option } from 'commander'
import { version } from '../../../package.json'
import { flagOf } from '../../config/table.js'
import { malformed } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { commonFormats, parseChoice, type Values } from '../../platform/values.js'
import { examples, groups, topics } from '../commands/index.js'
import { mayColor } from '../context.js'
import { aliases, type CommandDefinition, type GlobalFlags, globalOptions, type OptionDefinition } from '../define-command.js'

type Topic = keyof typeof topics

/** The program as commander's commands, and what one parsing of a command line has found. */
export class Program {
  readonly root = new Command('plants')
  readonly helpOption = this.root.createOption('-h, --help', 'show this help')
  /** the command at which commander stopped */
  command = this.root
  /** the long flags of the given options, by the names of their values: `--no-tag` by `tag` */
  readonly given = new Map<string, string>()
  /** the help or the version that was asked for */
  page = ''
  /** of the commands that are loaded */
  readonly definitions = new Map<Command, CommandDefinition>()
  /** what a shell completes */
  readonly values = new Map<Option | Argument, Values>()
  readonly #io: Io
  #argv: string[] = []

  constructor(io: Io) {
    this.#io = io
    const write = (text: string) => {
      this.page += text
    }
    const width = () => (io.stdout.isTerminal ? io.stdout.columns : 100)
    let colors: boolean | undefined
    const hasColors = () => (colors ??= mayColor(io.stdout, this.flags, io)) // asked for each title
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
        styleTitle: (text) => (hasColors() ? styleText('bold', text, { validateStream: false }) : text),
        optionTerm: ({ short, flags }) => (short === undefined ? `    ${flags}` : flags),
        subcommandTerm: (command) => `${command.name()} ${command.usage()}`.replace(/ ?\[options\]/, ''),
      })
      .version(version, '-V, --version', 'show the version')
      .hook('preSubcommand', (_, command) => this.load(command))
    for (const option of globalOptions) this.#addOption(this.root, option)
    for (const [group, commands] of Object.entries(groups)) {
      this.root.commandsGroup(`${group}:`)
      for (const { name, summary } of commands) this.#addCommand(this.root, name).summary(summary)
    }
    this.#addCommand(this.root, 'help').summary('show help')
    this.root.configureHelp({ ...this.root.configureHelp(), formatHelp: programHelp })
  }

  /** the given flags about what may be shown */
  get flags(): Pick<GlobalFlags, 'color' | 'input'> {
    return { color: !this.given.has('color'), input: !this.given.has('input') }
  }

  /** Runs a command line, or sets the page that it asks for. Throws `CommanderError` for an invalid one. */
  async parse(argv: string[]): Promise<void> {
    this.#argv = argv
    try {
      await this.root.parseAsync(argv, { from: 'user' })
    } catch (error) {
      if (!(error instanceof CommanderError)) throw error
      const isHelp = error.code === 'commander.helpDisplayed'
      const words = isHelp ? this.#wordsAfterHelp() : []
      if (words.length > 0) {
        this.page = ''
        return await this.parse(['help', ...words])
      }
      const { commands, args, parent } = this.command
      const isUnknown = isHelp && commands.length > 0 && /^[^-]/.test(args[0] ?? '')
      const isGroup = error.code === 'commander.help' && (parent !== null || argv.length === 0)
      if (isUnknown || (error.exitCode !== 0 && !isGroup)) throw error
    }
  }

  /** The command in `plants --help stores add` or `plants stores --help add`. */
  #wordsAfterHelp(): string[] {
    const { commands, args, parent } = this.command
    const [help, ...words] = args
    const end = [...words, '-'].findIndex((word) => word.startsWith('-'))
    if (commands.length === 0 || !help?.startsWith('-') || end === 0) return []
    return [...(parent ? [this.command.name()] : []), ...words.slice(0, end)]
  }

  /** Adds to a command of the program what its definition has. */
  async load(command: Command): Promise<void> {
    if (command.parent !== this.root || this.definitions.has(command)) return
    const listed = Object.values(groups).flat()
    const found = listed.find(({ name }) => name === command.name())
    this.#define(command, found ? await found.load() : this.#helpCommand())
  }

  /** Shows help as `--help` does, or a topic. */
  async #showHelp(words: string[]): Promise<void> {
    const [topic = ''] = words
    if (words.length === 1 && isTopic(topic)) {
      const { topicPages } = await import('../help/topic-pages.js')
      const help = this.root.createHelp()
      help.prepareContext(this.#io.stdout.isTerminal ? { helpWidth: this.#io.stdout.columns } : { helpWidth: 100 })
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
    const { description, arguments: args = [], options = [], settings = [], formats = commonFormats, commands, run } = definition
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
    const listed = settings.map(flagOf)
    for (const definition of globalOptions) {
      const option = this.#addOption(command, definition).hideHelp(!listed.includes(longFlag(definition)))
      if (run && option.long === flagOf('output')) this.values.set(option, formats)
    }
    if (commands) command.usage('<command> [options]').helpCommand('help [command]', 'show help for a command')
    for (const below of commands ?? []) this.#define(this.#addCommand(command, below.name), below)
    command.addHelpText('after', () => this.#helpAfter(definition))
    if (run) command.action(() => run({ args: command.processedArgs.flat(), flags: flagsOf(command), formats }, this.#io))
  }

  /** Does not use `.choices()`, whose error has no fields for the option and the value. */
  #addOption(command: Command, definition: OptionDefinition): Option {
    const { flags, description, group, choices, values = choices, parse, conflicts, default: text } = definition
    if (group) command.optionsGroup(`${group}:`)
    const option = command.createOption(flags, description)
    const flag = longFlag(definition)
    const read = parse ?? (choices && ((name: string, value: string) => parseChoice(name, value, choices)))
    if (read) option.argParser((value: string) => read(flag, value))
    if (text !== undefined) option.default(read ? read(flag, text) : text, text)
    if (conflicts) option.conflicts(conflicts)
    if (values) this.values.set(option, values)
    command.addOption(option).on(`option:${option.name()}`, (value) => this.#note(option, flag, value))
    return option
  }

  /** @throws {PlantsError} `malformed` if the line has two values for an option, or `--dry-run` as one */
  #note(option: Option, flag: string, value: unknown): void {
    if (value === '--dry-run' && this.#argv.includes(value))
      throw malformed(`${flag} needs a value, but --dry-run follows`, `For this value: ${flag}=--dry-run`)
    const before = this.given.get(option.attributeName())
    if (before === flag && option.required) throw malformed(`${flag} was given twice`, 'Leave out one of them')
    if (before !== undefined && before !== flag) throw malformed(`${before} cannot be used with ${flag}`, 'Leave out one of them')
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
    const texts = sections.map(({ title, lines }) => `${style(`${title}:`)}\n${lines.map((line) => `  ${line}\n`).join('')}\n`)
    return `\n${texts.join('')}${style('Global options:')} plants help options`
  }
}

/** The global options of a command line, even of an invalid one, whose error is printed as they say. */
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

/** The command that this name or alias has below another. */
export function subcommandOf(command: Command, word: string): Command | undefined {
  return command.commands.find((below) => below.name() === word || below.aliases().includes(word))
}

export function isTopic(word: string): word is Topic {
  return Object.hasOwn(topics, word)
}

/** The values of the options of a command, some of which can stand before its name. */
function flagsOf(command: Command): GlobalFlags {
  const above = command.parent ? flagsOf(command.parent) : {}
  const isOwn = (name: string) => !(name in above) || command.getOptionValueSource(name) === 'cli'
  return { ...above, ...Object.fromEntries(Object.entries(command.opts()).filter(([name]) => isOwn(name))) }
}

function longFlag({ flags }: OptionDefinition): string {
  return /--[\w-]+/.exec(flags)?.[0] ?? flags
}

/** The commands in two columns if they fit, so that a terminal of 24 rows shows all. */
function programHelp(program: Command, help: Help): string {
  const { helpWidth: width = 80 } = help
  const groups = help.groupItems([], help.visibleCommands(program), (command) => command.helpGroup())
  const lists = Array.from(groups, ([group, commands]) =>
    help.formatItemList(
      group,
      commands.map((command) => help.formatItem(command.name(), 10, command.summary(), help)),
      help,
    ),
  )
  const [left, right] = width < 80 ? [lists.flat(), []] : [lists.slice(0, 2).flat(), lists.slice(2).flat()]
  const rows = Array.from({ length: Math.max(left.length, right.length) }, (_, at) => {
    const [cell = '', beside = ''] = [left[at], right[at]]
    return `${cell}${' '.repeat(Math.max(0, 40 - help.displayWidth(cell)))}${beside}`.trimEnd()
  })
  const more = {
    'Global options': '-s, -o, -q, -v and others: plants help options',
    'More help': `plants help <command>, ${Object.keys(topics).join(', ')}`,
    Manual: 'man plants, with the npm package',
  }
  return [
    `${help.styleTitle('Usage:')} plants <command> [options]`,
    ...help.formatItemList(
      'Examples:',
      examples.map((line) => `  ${line}`),
      help,
    ),
    ...rows,
    ...Object.entries(more).map(([title, text]) => help.boxWrap(`${title}: ${text}`, width).replace(`${title}:`, help.styleTitle)),
    '',
  ].join('\n')
}
