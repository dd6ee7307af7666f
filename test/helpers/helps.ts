import { loadCommands, pathTo, plants } from '../../src/cli/commands/index.js'
import { runPlants } from './run.js'

await loadCommands(plants.commands.map(({ name }) => name))

/** The help of a command and of its subcommands, by the words that lead to it. */
export async function helpsOf(words: string[]): Promise<Map<string, string>> {
  const { out } = await runPlants([...words, '--help'])
  const commands = pathTo(words)?.at(-1)?.commands ?? []
  const below = await Promise.all(commands.map(({ name }) => helpsOf([...words, name])))
  return new Map([[words.join(' '), out], ...below.flatMap((map) => [...map])])
}
