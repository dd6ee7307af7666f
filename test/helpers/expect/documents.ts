import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { buildProgram } from '../../../src/cli/program/program.js'
import { createIo, runPlants } from '../sandbox/run.js'

// What people read: the pages, and the help of the program.

const root = join(import.meta.dirname, '../../..')
const docs = ['docs', 'docs/design'].flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.md'))
    .toSorted()
    .map((name) => `${folder}/${name}`),
)

export const pages: ReadonlyMap<string, string> = new Map(
  [
    ...['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md', 'bench/README.md'],
    ...docs,
  ].map((path) => [path, readFileSync(join(root, path), 'utf8')]),
)

export const documentation = [...pages.values()].join('\n')

export interface Block {
  /** `sh` is run, `console` too, with what its commands print; anything else is text */
  language: string
  text: string
}

export function findBlocks(page: string): Block[] {
  const blocks = page.matchAll(/^```(\w+)\n(.*?)^```$/gms)
  return Array.from(blocks, ([, language = '', text = '']) => ({ language, text }))
}

export const program = await buildProgram(createIo({}))

/** The names of the commands that help lists, without `help`. */
export const commandNames = program.commands
  .map((command) => command.name())
  .filter((name) => name !== 'help')

export function listCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(listCommands)]
}

export function getCommandPath(command: Command): string[] {
  return command.parent ? [...getCommandPath(command.parent), command.name()] : []
}

/** The help of every command, by the words that lead to it. */
export async function readAllHelps(): Promise<Map<string, string>> {
  const helps = new Map<string, string>()
  for (const command of listCommands(program)) {
    const path = getCommandPath(command)
    helps.set(path.join(' '), (await runPlants([...path, '--help'])).out)
  }
  return helps
}
