import { type CommandDefinition, globalOptions, type Topic } from '../define-command.js'
import type { topicPages } from '../help/topic-pages.js'

/** The commands in the order of the help. Their definitions are loaded for a command line that names them. */
const listed: readonly { name: string; summary: string; load(): Promise<CommandDefinition> }[] = [
  { name: 'create', summary: 'create a plant', load: async () => (await import('./create.js')).create },
  { name: 'get', summary: 'show a plant', load: async () => (await import('./get.js')).get },
  { name: 'update', summary: 'change a plant', load: async () => (await import('./update.js')).update },
  { name: 'list', summary: 'list the plants', load: async () => (await import('./list.js')).list },
  { name: 'count', summary: 'count the plants', load: async () => (await import('./count.js')).count },
  { name: 'import', summary: 'create many plants', load: async () => (await import('./import.js')).importPlants },
  { name: 'delete', summary: 'delete plants', load: async () => (await import('./delete.js')).deletePlant },
  { name: 'export', summary: 'write all plants to a file or to stdout', load: async () => (await import('./export.js')).exportPlants },
  { name: 'backup', summary: 'copy the store into a file', load: async () => (await import('./backup.js')).backup },
  { name: 'restore', summary: 'restore a backup', load: async () => (await import('./backup.js')).restore },
  { name: 'serve', summary: 'serve a store over HTTP', load: async () => (await import('./serve.js')).serve },
  { name: 'tokens', summary: 'manage who may use plants serve', load: async () => (await import('./tokens.js')).tokens },
  { name: 'openapi', summary: 'print the description of the HTTP interface', load: async () => (await import('./openapi.js')).openapi },
  { name: 'stores', summary: 'give stores a name, and choose one', load: async () => (await import('./stores.js')).stores },
  {
    name: 'auth',
    summary: 'save the token for a service, or the password for a database',
    load: async () => (await import('./auth.js')).auth,
  },
  { name: 'config', summary: 'read and change the settings', load: async () => (await import('./config.js')).config },
  { name: 'doctor', summary: 'look for what is wrong', load: async () => (await import('./doctor.js')).doctor },
  {
    name: 'completion',
    summary: 'let a shell complete commands, flags and stores',
    load: async () => (await import('./completion.js')).completion,
  },
]

function topic(name: keyof typeof topicPages, meaning: string): Topic {
  return { name, meaning, page: async (width) => (await import('../help/topic-pages.js')).topicPages[name](width) }
}

/** The program. Of its commands, `loadCommands` gets those that a command line names; of the others this has what the help lists. */
export const plants: CommandDefinition & { commands: CommandDefinition[] } = {
  name: 'plants',
  description: 'Create plants in a store, here or over HTTP, and read what is there.',
  options: [{ flags: '-V, --version', description: 'show the version' }, ...globalOptions],
  commands: listed.map(({ name, summary }) => ({ name, summary, description: summary })),
  topics: [
    topic('environment', 'every setting and variable, and which wins'),
    topic('exit-codes', 'what a run can end with, and when'),
    topic('formats', 'what plants, answers and errors look like'),
  ],
  examples: ['plants create --id 1 --name Fern', 'plants list', 'plants help environment'],
}

/** Loads the definitions of the commands that are among some words. */
export async function loadCommands(words: readonly string[]): Promise<void> {
  for (const [index, { name, summary, load }] of listed.entries()) {
    if (words.includes(name)) plants.commands[index] = { ...(await load()), summary }
  }
}

/** The commands that words lead to, from the program on; undefined where there is no such command. */
export function pathTo(words: readonly string[], path: readonly CommandDefinition[] = [plants]): readonly CommandDefinition[] | undefined {
  const [word, ...rest] = words
  if (word === undefined) return path
  const next = path.at(-1)?.commands?.find(({ name }) => name === word)
  return next && pathTo(rest, [...path, next])
}
