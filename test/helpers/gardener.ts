import type { RunOptions } from './run.js'
import { World } from './world.js'

export const team = 'https://plants.example.com/v1'
export const garden = '/srv/garden.db'
export const stores = { team: { address: team, timeout: '2m' }, garden: { address: garden } }
export const onTerminal: RunOptions = { terminals: ['stdout', 'stderr'], columns: 120 }

/** A user with two saved stores: a service and a file. */
export function gardener(settings: object = {}): World {
  const user = new World()
  user.save({ stores, ...settings })
  return user
}
