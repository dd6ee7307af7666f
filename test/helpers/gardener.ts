import type { World } from './run.js'
import { User } from './user.js'

export const team = 'https://plants.example.com/v1'
export const garden = '/srv/garden.db'
export const stores = { team: { address: team, timeout: '2m' }, garden: { address: garden } }
export const onTerminal: World = { terminals: ['stdout', 'stderr'], columns: 120 }

/** A user with two saved stores: a service and a file. */
export function gardener(settings: object = {}): User {
  const user = new User()
  user.write({ stores, ...settings })
  return user
}
