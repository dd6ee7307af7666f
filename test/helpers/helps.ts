import { parseCommandLine } from '../../src/cli/command-line.js'
import { loadCommands, plants } from '../../src/cli/commands/index.js'
import type { CommandDefinition } from '../../src/cli/define-command.js'
import { runPlants } from './run.js'

await loadCommands(plants.commands.map(({ name }) => name))

/** The command with this name, or with those of its parent and itself; undefined if there is none. */
export function commandAt(words: string[]): CommandDefinition | undefined {
  const { command, operands } = parseCommandLine(words, plants)
  return operands.length === 0 ? command : undefined
}

/** The help of a command and of its subcommands, by the words that lead to it. */
export async function helpsOf(words: string[]): Promise<Map<string, string>> {
  const { out } = await runPlants([...words, '--help'])
  const commands = commandAt(words)?.commands ?? []
  const below = await Promise.all(commands.map(({ name }) => helpsOf([...words, name])))
  return new Map([[words.join(' '), out], ...below.flatMap((map) => [...map])])
}
