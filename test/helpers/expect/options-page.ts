import type { Command } from 'commander'
import { getCommandPath, listCommands, program } from './documents.js'

// Formats docs/options.md, which lists the options of all commands as the help does.

const introduction = `# Options

This page lists the options of all commands, with the descriptions that \`--help\` and the manual pages show. It is generated from the program. Other [pages](../README.md#documentation) explain what the options are for.
`

export function formatOptionsPage(): string {
  const commands = listCommands(program).filter(
    (command) => command !== program && command.name() !== 'help' && command.commands.length === 0,
  )
  const tables = commands.map((command) => ({
    title: `plants ${getCommandPath(command).join(' ')}`,
    introduction: command.description(),
    // `stores add` lists some options of all commands again, because it saves them with the store.
    rows: formatRows(command).filter((row) => !isRepeatedByHelp(row)),
  }))
  const hasRows = ({ rows }: Table) => rows.length > 0
  const others = tables.filter((table) => !hasRows(table)).map(({ title }) => `\`${title}\``)
  return [
    introduction,
    formatTable({
      title: 'All commands',
      introduction: 'Every command has these options.',
      rows: formatRows(program),
    }),
    ...tables.filter(hasRows).map(formatTable),
    `## Other commands\n\nThese commands have only the options of all commands: ${others.join(', ')}.\n`,
  ].join('\n')
}

/** Help lists these options again at each command that has a store or prints plants. */
function isRepeatedByHelp(row: string): boolean {
  return ['--store', '--output', '--help'].some((flag) => row.includes(`, ${flag}`))
}

interface Table {
  title: string
  introduction: string
  rows: string[]
}

function formatTable({ title, introduction, rows }: Table): string {
  const heading = [`## ${title}`, '', introduction, '']
  return [...heading, '| option | description |', '|---|---|', ...rows, ''].join('\n')
}

function formatRows(command: Command): string[] {
  const help = command.createHelp()
  return help.visibleOptions(command).map((option) => {
    const description = help.optionDescription(option).replaceAll('|', '\\|')
    return `| \`${option.flags}\` | ${description} |`
  })
}
