import type { Command } from 'commander'
import { Program, subcommandOf } from '../../src/cli/program/program.js'
import { ioOf, runPlants } from './run.js'

/** The program with the definitions of all commands. */
export const program = new Program(ioOf({}))
for (const command of program.root.commands) await program.load(command)

/** The names of the commands that help lists, without `help`. */
export const commandNames = program.root.commands.map((command) => command.name()).filter((name) => name !== 'help')

/** The command with this name, or with those of its parent and itself; undefined if there is none. */
export function commandAt(words: string[]): Command | undefined {
  return words.reduce<Command | undefined>((command, word) => command && subcommandOf(command, word), program.root)
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
