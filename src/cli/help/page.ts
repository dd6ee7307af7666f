import type { Io } from '../../platform/io.js'
import type { CommandSpec, Flag, Term } from '../spec.js'
import { columnFor, paragraph, rowsOf, section } from './layout.js'

export const helpFlag: Flag = { term: '-h, --help', meaning: 'show this help' }
export const helpCommand: Term = { term: 'help [command]', meaning: 'show the help of a command' }

/**
 * The help of a command. It is laid out here because it is shown a hundred times a day, and the library that reads the command
 * line takes longer to load than this takes altogether.
 *
 * @param path the commands that lead to it, from the program on
 * @param width columns of the place where it is shown
 */
export function helpPage(path: CommandSpec[], width: number): string {
  const [program, ...below] = path
  const command = path.at(-1)
  if (!program || !command) return ''
  const own = (command.flags ?? []).map(withPreset)
  const sections: [title: string, rows: readonly Term[]][] = [
    ['Arguments', (command.arguments ?? []).map((argument) => ({ ...argument, term: argument.term.replace(/[<>[\].]/g, '') }))],
    ['Options', [...own, helpFlag]],
    ['Global Options', below.length > 0 ? (program.flags ?? []) : []],
    ['Commands', command.commands ? [...command.commands.map(rowOf), helpCommand] : []],
    ['Topics', (command.topics ?? []).map(({ name, meaning }) => ({ term: `help ${name}`, meaning }))],
  ]
  const column = columnFor(
    sections.flatMap(([, rows]) => rows),
    width,
  )
  const rest = command.commands ? ['[command]'] : (command.arguments ?? []).map(({ term }) => term)
  return [
    `Usage: ${[...path.map(({ name }) => name), '[options]', ...rest].join(' ')}\n\n`,
    `${paragraph(command.description, width)}\n`,
    ...sections.filter(([, rows]) => rows.length > 0).map(([title, rows]) => `${title}:\n${rowsOf(rows, width, column)}\n`),
    ...(command.notes ?? []).map(({ title, lines }) => `${section(title, lines)}\n`),
    command.examples ? section(command.examples.length > 1 ? 'Examples' : 'Example', command.examples) : '',
  ].join('')
}

/** The columns that a page may have where stdout goes to. */
export function widthFor({ stdout }: Io): number {
  return stdout.isTerminal ? stdout.columns : 100
}

function withPreset({ preset, ...flag }: Flag): Term {
  return preset === undefined ? flag : { ...flag, meaning: `${flag.meaning} (default: "${preset}")` }
}

function rowOf({ name, flags, arguments: taken = [], summary, description }: CommandSpec): Term {
  const words = [name, ...(flags ? ['[options]'] : []), ...taken.map(({ term }) => term)]
  return { term: words.join(' '), meaning: summary ?? description }
}
