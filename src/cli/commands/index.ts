import { presetOf, settingNames, settingOf } from '../../config/table.js'
import { topics } from '../help/topics.js'
import type { CommandSpec, Flag } from '../spec.js'
import { completion } from './completion-spec.js'
import { backup, exportPlants, importPlants, restore } from './copies-spec.js'
import { create, deletePlant, get, list } from './plants-spec.js'
import { openapi, serve, tokens } from './service-spec.js'
import { auth, config, doctor, stores } from './settings-spec.js'

/** Every command takes these. */
const globalFlags: Flag[] = [
  { term: '-V, --version', meaning: 'show the version' },
  ...settingNames.flatMap((name) => {
    const { flag, meaning, isSwitch, values } = settingOf(name)
    if (flag === undefined) return []
    return { term: flag, meaning: isSwitch ? meaning : `${meaning}; by default ${presetOf(name)}`, ...(values && { values }) }
  }),
  { term: '-v, --verbose', meaning: 'tell on stderr what is done: settings and where from, requests and answers' },
  { term: '--no-input', meaning: 'never ask questions' },
  { term: '--no-color', meaning: 'no colours; also NO_COLOR' },
]

/** The program, with its commands in the order of its help. */
export const plants: CommandSpec = {
  name: 'plants',
  description: 'Create plants in a store, here or behind HTTP, and read what is there.',
  flags: globalFlags,
  commands: [
    ...[create, get, list, importPlants, deletePlant, exportPlants, backup, restore],
    ...[serve, tokens, openapi, stores, auth, config, doctor, completion],
  ],
  topics,
  examples: ['plants create --id 1 --name Fern', 'plants list', 'plants help environment'],
}

/** The commands that words lead to, from the program on; undefined where there is no such command. */
export function pathTo(words: string[], path: CommandSpec[] = [plants]): CommandSpec[] | undefined {
  const [word, ...rest] = words
  if (word === undefined) return path
  const next = path.at(-1)?.commands?.find(({ name }) => name === word)
  return next && pathTo(rest, [...path, next])
}
