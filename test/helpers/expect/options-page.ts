import type { Command } from 'commander'
import { PlantsCommand } from '../../../src/cli/command.js'
import { getCommandPath, listCommands, program } from './documents.js'

// Formats docs/options.md, which lists the usage, arguments and options of each command as its help does.

const introduction = `# Options

This page is the reference of all commands: their usage, arguments and options, generated from the texts of \`--help\` and the manual pages. Other [pages](../README.md#documentation) explain what the options are for.
`

export function formatOptionsPage(): string {
  const commands = listCommands(program).filter(
    (command) => command !== program && command.name() !== 'help' && command.commands.length === 0,
  )
  // Only `plants` itself has the option --version.
  const commonRows = formatOptionRows(program).filter((row) => !row.includes(', --version'))
  return [
    introduction,
    `Commands: ${commands.map(formatLink).join(', ')}\n`,
    '## All commands\n\nEvery command has these options. `plants --version` or `plants -V` shows the version.\n',
    ...formatTable('option', commonRows),
    ...commands.flatMap(formatCommand),
  ].join('\n')
}

function formatLink(command: Command): string {
  const path = getCommandPath(command)
  return `[${path.join(' ')}](#plants-${path.join('-')})`
}

function formatCommand(command: Command): string[] {
  // `stores add` lists some options of all commands again, because it saves them with the store.
  const optionRows = formatOptionRows(command).filter((row) => !isRepeatedByHelp(row))
  return [
    `## plants ${getCommandPath(command).join(' ')}\n`,
    `${command.description()}\n`,
    `\`\`\`text\n${formatUsage(command)}\n\`\`\`\n`,
    ...formatTable('argument', formatArgumentRows(command)),
    ...formatTable('option', optionRows),
  ]
}

function formatUsage(command: Command): string {
  const examples = command instanceof PlantsCommand ? command.examples : []
  return [
    command.createHelp().commandUsage(command),
    '',
    'Examples:',
    ...examples.map((line) => `  ${line}`),
  ].join('\n')
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
