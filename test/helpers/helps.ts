import type { Command } from 'commander'
import { programOf } from '../../src/cli/program/program.js'
import { ioOf, runPlants } from './run.js'

/** The program with the options of all commands. */
export const program = await programOf(ioOf({}))

/** The names of the commands that help lists, without `help`. */
export const commandNames = program.commands
  .map((command) => command.name())
  .filter((name) => name !== 'help')

/** The command with this name, or with those of its parent and itself; undefined if there is none. */
export function commandAt(words: string[]): Command | undefined {
  return words.reduce<Command | undefined>(
    (command, word) =>
      command?.commands.find((each) => each.name() === word || each.aliases().includes(word)),
    program,
  )
}

/** A command and those below it. */
export function treeOf(command: Command): Command[] {
  return [command, ...command.commands.flatMap(treeOf)]
}

/** The help of a command and of its subcommands, by the words that lead to it. */
export async function helpsOf(words: string[]): Promise<Map<string, string>> {
  const { out } = await runPlants([...words, '--help'])
  const commands = commandAt(words)?.commands ?? []
  const below = await Promise.all(commands.map((command) => helpsOf([...words, command.name()])))
  return new Map([[words.join(' '), out], ...below.flatMap((map) => [...map])])
}
