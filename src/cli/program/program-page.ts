import { groups } from '../commands/index.js'

export const examples = ['plants create --id 1 --name Fern --tag shade', 'plants list --search fern']

/** Commands stand in two columns if they fit, so that a terminal of 24 rows shows all. */
export function programPage(width: number): string {
  const blocks = Object.entries(groups).map(([group, commands]) => [
    `${group}:`,
    ...Object.entries(commands).map(([name, [summary]]) => `  ${name.padEnd(10)}  ${summary}`),
    '',
  ])
  const [left, right] = width < 80 ? [blocks.flat(), []] : [blocks.slice(0, 2).flat(), blocks.slice(2).flat()]
  const rows = Array.from({ length: Math.max(left.length, right.length) }, (_, at) =>
    `${(left[at] ?? '').padEnd(40)}${right[at] ?? ''}`.trimEnd(),
  )
  return `Usage: plants <command> [options]

Examples:
${examples.map((line) => `  ${line}\n`).join('')}
${rows.join('\n')}
Global options: -s, -o, -q, -v and others: plants help options
More help: plants help <command>, plants help topics
Manual: man plants, with the npm package
`
}
