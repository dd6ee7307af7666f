import type { Command } from 'commander'
import { getCommandPath, listCommands, program } from './documents.js'

// Formats docs/options.md, which lists the usage, arguments and options of each command as its help does.

const introduction = `# Options

This page lists the usage, arguments and options of each command. The page is generated from the texts that \`--help\` and the manual pages also show. Other [pages](../README.md#documentation) explain what the options are for.
`

export function formatOptionsPage(): string {
  const commands = listCommands(program).filter(
    (command) => command !== program && command.name() !== 'help' && command.commands.length === 0,
  )
  return [
    introduction,
    '## All commands\n\nEvery command has these options.\n',
    ...formatTable('option', formatOptionRows(program)),
    ...commands.flatMap(formatCommand),
  ].join('\n')
}

function formatCommand(command: Command): string[] {
  // `stores add` lists some options of all commands again, because it saves them with the store.
  const optionRows = formatOptionRows(command).filter((row) => !isRepeatedByHelp(row))
  return [
    `## plants ${getCommandPath(command).join(' ')}\n`,
    `${command.description()}\n`,
    `\`\`\`text\n${command.createHelp().commandUsage(command)}\n\`\`\`\n`,
    ...formatTable('argument', formatArgumentRows(command)),
    ...formatTable('option', optionRows),
  ]
}

/** Help lists these options again at each command that has a store or prints plants. */
function isRepeatedByHelp(row: string): boolean {
  return ['--store', '--output', '--help'].some((flag) => row.includes(`, ${flag}`))
}

/** Without rows, a command has no table. */
function formatTable(title: string, rows: string[]): string[] {
  return rows.length === 0 ? [] : [`| ${title} | description |`, '|---|---|', ...rows, '']
}

function formatArgumentRows(command: Command): string[] {
  const help = command.createHelp()
  return help
    .visibleArguments(command)
    .map((argument) => formatRow(help.argumentTerm(argument), help.argumentDescription(argument)))
}

function formatOptionRows(command: Command): string[] {
  const help = command.createHelp()
  return help
    .visibleOptions(command)
    .map((option) => formatRow(option.flags, help.optionDescription(option)))
}

function formatRow(term: string, description: string): string {
  return `| \`${term}\` | ${description.replaceAll('|', '\\|')} |`
}
