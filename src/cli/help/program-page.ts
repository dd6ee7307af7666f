import { styleText } from 'node:util'
import { mayColor } from '../../output/output.js'
import type { Io } from '../../platform/io.js'
import { examples, groups, topics } from '../commands/index.js'

/** Help is as wide as the terminal, also through a pipe to another program there. */
export function pageStyle(flags: { color?: boolean }, io: Io) {
  const isColored = mayColor(io.stdout, flags, io)
  return {
    width: [io.stdout, io.stderr].find(({ isTerminal }) => isTerminal)?.columns ?? 100,
    isColored,
    styleTitle: (title: string) => (isColored ? styleText('bold', title, { validateStream: false }) : title),
  }
}

/** Commands stand in two columns if they fit, so that a terminal of 24 rows shows all. */
export function programPage(width: number, styleTitle: (title: string) => string): string {
  const blocks = Object.entries(groups).map(([group, commands]) => [
    `${group}:`,
    ...Object.entries(commands).map(([name, [summary]]) => `  ${name.padEnd(10)}  ${summary}`),
    '',
  ])
  const [left, right] = width < 80 ? [blocks.flat(), []] : [blocks.slice(0, 2).flat(), blocks.slice(2).flat()]
  const rows = Array.from({ length: Math.max(left.length, right.length) }, (_, at) =>
    `${(left[at] ?? '').padEnd(40)}${right[at] ?? ''}`.trimEnd(),
  )
  const lines = [
    'Usage: plants <command> [options]',
    '',
    'Examples:',
    ...examples.map((line) => `  ${line}`),
    '',
    ...rows,
    'Global options: -s, -o, -q, -v and others: plants help options',
    `More help: plants help <command>, ${Object.keys(topics).join(', ')}`,
    'Manual: man plants, with the npm package',
    '',
  ]
  return lines.join('\n').replace(/^[A-Z][a-z ]+:|[A-Z][a-z]+:$/gm, styleTitle)
}
