import { type CommandDefinition, globalOptions } from '../define-command.js'
import { topics } from '../help/topics.js'
import { auth } from './auth.js'
import { backup } from './backup.js'
import { completion } from './completion.js'
import { config } from './config.js'
import { create } from './create.js'
import { deletePlant } from './delete.js'
import { doctor } from './doctor.js'
import { exportPlants } from './export.js'
import { get } from './get.js'
import { importPlants } from './import.js'
import { list } from './list.js'
import { openapi } from './openapi.js'
import { restore } from './restore.js'
import { serve } from './serve.js'
import { stores } from './stores.js'
import { tokens } from './tokens.js'

/** The program, with its commands in the order of its help. Every run loads these files, so they import only what is small. */
export const plants: CommandDefinition & { commands: readonly CommandDefinition[] } = {
  name: 'plants',
  description: 'Create plants in a store, here or over HTTP, and read what is there.',
  options: [{ flags: '-V, --version', description: 'show the version' }, ...globalOptions],
  commands: [
    ...[create, get, list, importPlants, deletePlant, exportPlants, backup, restore],
    ...[serve, tokens, openapi, stores, auth, config, doctor, completion],
  ],
  topics,
  examples: ['plants create --id 1 --name Fern', 'plants list', 'plants help environment'],
}

/** The commands that words lead to, from the program on; undefined where there is no such command. */
export function pathTo(words: readonly string[], path: readonly CommandDefinition[] = [plants]): readonly CommandDefinition[] | undefined {
  const [word, ...rest] = words
  if (word === undefined) return path
  const next = path.at(-1)?.commands?.find(({ name }) => name === word)
  return next && pathTo(rest, [...path, next])
}
