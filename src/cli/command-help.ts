import { type Command, Help, type Option } from 'commander'

interface DescribedCommand extends Command {
  readonly examples: readonly string[]
}

/** Formats help as gh does: the description first, and options below subcommands. */
export class CommandHelp extends Help {
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
