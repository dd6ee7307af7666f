import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { buildProgram } from '../../../src/cli/program/program.js'
import { createIo, runPlants } from '../sandbox/run.js'

// Reads the pages of the documentation, and the help of the program.

const root = join(import.meta.dirname, '../../..')
const docs = ['docs', 'docs/design'].flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.md'))
    .toSorted()
    .map((name) => `${folder}/${name}`),
)

const otherPages = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'SECURITY.md',
  'bench/README.md',
]

/** The texts of all pages, by their paths. */
export const pages: ReadonlyMap<string, string> = new Map(
  [...otherPages, ...docs].map((path) => [path, readFileSync(join(root, path), 'utf8')]),
)

export const documentation = [...pages.values()].join('\n')

export interface Block {
  /** Blocks of `sh` are run. Those of `console` also show the output; all others are text. */
  language: string
  text: string
}

/** Matches a block, which is indented in a list, or the title of a section. */
const parts =
  /^(?<indent> *)```(?<language>\w+)\n(?<text>.*?)^\k<indent>```$|^#+ (?<title>[^\n]*)$/gms

export function findBlocks(page: string): Block[] {
  return findProcedures(page).flat()
}

/**
 * Finds the blocks that a reader copies together: one that stands alone, or all blocks of numbered
 * steps. Steps are indented in a list, or are sections whose titles are numbered.
 */
export function findProcedures(page: string): Block[][] {
  const procedures: Block[][] = []
  let steps: Block[] | undefined
  let isNumbered = false
  for (const { groups = {} } of page.matchAll(parts)) {
    const { indent = '', language = '', text = '', title } = groups
    if (title !== undefined) {
      isNumbered = /^\d+\. /.test(title)
      if (!isNumbered) steps = undefined
      continue
    }
    const block = { language, text: text.replaceAll(RegExp(`^${indent}`, 'gm'), '') }
    if (indent === '' && !isNumbered) {
      procedures.push([block])
    } else if (steps === undefined) {
      steps = [block]
      procedures.push(steps)
    } else {
      steps.push(block)
    }
  }
  return procedures
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

/** Reads the help of every command, by the words that lead to the command. */
export async function readAllHelps(): Promise<Map<string, string>> {
  const helps = new Map<string, string>()
  for (const command of listCommands(program)) {
    const path = getCommandPath(command)
    helps.set(path.join(' '), (await runPlants([...path, '--help'])).out)
  }
  return helps
}
