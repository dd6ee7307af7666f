import type { Define } from '../command.js'

type ListedCommand = readonly [summary: string, load: () => Promise<Define>, ...aliases: string[]]

/** In the order of the help. */
const groups: Readonly<Record<string, Readonly<Record<string, ListedCommand>>>> = {
  Plants: {
    create: [
      'create a plant',
      async () => (await import('./create.js')).defineCreate,
      'new',
      'add',
    ],
    get: ['show plants by id', async () => (await import('./get.js')).defineGet, 'show'],
    list: ['list or search plants', async () => (await import('./list.js')).defineList, 'ls'],
    count: ['count plants', async () => (await import('./count.js')).defineCount],
    update: ['change plants', async () => (await import('./update.js')).defineUpdate],
    delete: [
      'delete plants',
      async () => (await import('./delete.js')).defineDelete,
      'rm',
      'remove',
    ],
  },
  Files: {
    import: ['create many plants', async () => (await import('./import/import.js')).defineImport],
    export: ['write plants to a file', async () => (await import('./export.js')).defineExport],
    backup: ['copy the store to a file', async () => (await import('./backup.js')).defineBackup],
    restore: ['restore a backup', async () => (await import('./restore.js')).defineRestore],
  },
  Service: {
    serve: ['serve a store over HTTP', async () => (await import('./serve.js')).defineServe],
    tokens: [
      'manage service tokens',
      async () => (await import('./tokens.js')).defineTokens,
      'token',
    ],
    auth: ['save a token', async () => (await import('./auth.js')).defineAuth],
    openapi: ['describe the HTTP API', async () => (await import('./openapi.js')).defineOpenapi],
  },
  Setup: {
    stores: [
      'name and select stores',
      async () => (await import('./stores.js')).defineStores,
      'store',
    ],
    config: [
      'read and change settings',
      async () => (await import('./config.js')).defineConfig,
      'setting',
      'settings',
    ],
    doctor: ['check for problems', async () => (await import('./doctor.js')).defineDoctor],
    completion: [
      'set up shell completion',
      async () => (await import('./completion.js')).defineCompletion,
    ],
    version: ['show the version', async () => (await import('./version.js')).defineVersion],
    help: ['show help', async () => (await import('./help.js')).defineHelp],
  },
}

export const listed: Readonly<Record<string, ListedCommand>> = Object.assign(
  {},
  ...Object.values(groups),
)

export const examples = [
  'plants create --id 1 --name Fern --tag shade',
  'plants list --search fern',
]

/** Commands stand in two columns if they fit, so that a terminal of 24 rows shows all. */
export function programPage(width: number): string {
  const blocks = Object.entries(groups).map(([group, commands]) => [
    `${group}:`,
    ...Object.entries(commands).map(([name, [summary]]) => `  ${name.padEnd(10)}  ${summary}`),
    '',
  ])
  const [left, right] =
    width < 80 ? [blocks.flat(), []] : [blocks.slice(0, 2).flat(), blocks.slice(2).flat()]
  const rows = Array.from({ length: Math.max(left.length, right.length) }, (_, at) =>
    `${(left[at] ?? '').padEnd(40)}${right[at] ?? ''}`.trimEnd(),
  )
  return `Usage: plants <command> [options]

Examples:
${examples.map((line) => `  ${line}\n`).join('')}
${rows.join('\n')}
Global options: -s, -o, -q, -v and others: plants help options
More help: plants help <command> or topics
Manual: man plants, with the npm package
`
}
