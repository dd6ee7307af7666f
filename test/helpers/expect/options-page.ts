import type { Command } from 'commander'
import { getCommandPath, listCommands, program } from './documents.js'

// Formats docs/options.md, which lists the options of each command as its help does.

const introduction = `# Options

These are the options of all commands, generated from the texts of \`--help\`. \`plants help COMMAND\` also shows arguments and examples. Other [pages](README.md) explain what the options are for.

## All commands

\`plants --version\` or \`plants -V\` shows the version. Every command has these options:
`

export function formatOptionsPage(): string {
  const commands = listCommands(program).filter(
    (command) => command !== program && command.name() !== 'help' && command.commands.length === 0,
  )
  // Only `plants` itself has the option --version.
  const common = listOptions(program).filter(({ flags }) => !flags.includes('--version'))
  const commandsByItem = new Map<string, string>()
  return [introduction, ...common.map(formatItem), '']
    .concat(commands.flatMap((command) => formatCommand(command, commandsByItem)))
    .join('\n')
}

interface OptionText {
  flags: string
  description: string
}

/** @param commandsByItem the command that lists an option first, to which others refer */
function formatCommand(command: Command, commandsByItem: Map<string, string>): string[] {
  const name = getCommandPath(command).join(' ')
  const lines = [`## plants ${name}\n`, `${command.description()}\n`]
  // `stores add` lists some options of all commands again, because it saves them with the store.
  const options = listOptions(command).filter(({ flags }) => !isRepeatedByHelp(flags))
  const items: string[] = []
  const flagsByCommand = new Map<string, string[]>()
  for (const option of options) {
    const item = formatItem(option)
    const first = commandsByItem.get(item)
    if (first === undefined) items.push(item)
    else flagsByCommand.set(first, [...(flagsByCommand.get(first) ?? []), `\`${option.flags}\``])
    commandsByItem.set(item, first ?? name)
  }
  for (const [first, flags] of flagsByCommand)
    items.push(`- ${flags.join(', ')}: as for [${first}](#plants-${first.replaceAll(' ', '-')})`)
  return items.length === 0 ? lines : [...lines, ...items, '']
}

/** Help lists these options again at each command that has a store or prints plants. */
function isRepeatedByHelp(flags: string): boolean {
  return ['--store', '--output', '--help'].some((flag) => flags.includes(`, ${flag}`))
}

function listOptions(command: Command): OptionText[] {
  const help = command.createHelp()
  return help
    .visibleOptions(command)
    .map((option) => ({ flags: option.flags, description: help.optionDescription(option) }))
}

function formatItem({ flags, description }: OptionText): string {
  return `- \`${flags}\`: ${description}`
}
