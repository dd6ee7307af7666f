import { type Command, Help, type Option } from 'commander'

interface DescribedCommand extends Command {
  readonly examples: readonly string[]
}

type Term = readonly [term: string, description: string]

/** Formats help as gh does: the description first, and options below subcommands. */
export class CommandHelp extends Help {
  override minWidthToWrap = 20

  override formatHelp(command: DescribedCommand): string {
    const formatGroups = <Item>(groups: Map<string, Item[]>, toTerm: (item: Item) => Term) =>
      Array.from(groups, ([heading, items]) =>
        this.formatTerms(command, heading, items.map(toTerm)),
      ).flat()
    const subcommands = this.groupItems(
      [...command.commands],
      this.visibleCommands(command),
      (subcommand) => subcommand.helpGroup() || 'Commands:',
    )
    const options = this.groupItems(
      [...command.options],
      this.visibleOptions(command),
      ({ helpGroupHeading = 'Options:' }) => helpGroupHeading,
    )
    const parts = [
      [this.boxWrap(this.commandDescription(command), this.#width), ''],
      [this.#formatCommandLine(`Usage: ${this.commandUsage(command)}`, ''), ''],
      this.formatItemList(
        'Examples:',
        command.examples.map((line) => this.#formatCommandLine(line, '  ')),
        this,
      ),
      formatGroups(new Map([['Arguments:', this.visibleArguments(command)]]), (argument) => [
        this.argumentTerm(argument),
        this.argumentDescription(argument),
      ]),
      formatGroups(subcommands, (subcommand) => [
        this.subcommandTerm(subcommand),
        this.subcommandDescription(subcommand),
      ]),
      formatGroups(options, (option) => [this.optionTerm(option), this.optionDescription(option)]),
    ]
    return parts.flat().join('\n')
  }

  /** Formats lines that are aligned with those of the help of the command. */
  formatTerms(command: Command, heading: string, terms: readonly Term[]): string[] {
    const termWidth = this.padWidth(command, this)
    const items = terms.map(([term, description]) =>
      this.formatItem(term, termWidth, description, this),
    )
    return this.formatItemList(heading, items, this)
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

  get #width(): number {
    return this.helpWidth ?? 80
  }

  /** Wraps a command line, and indents the lines below its first one. */
  #formatCommandLine(line: string, indent: string): string {
    const nextIndent = `${indent}    `
    const lines = this.boxWrap(line, this.#width - nextIndent.length)
    return indent + lines.replaceAll('\n', `\n${nextIndent}`)
  }
}
