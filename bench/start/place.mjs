import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

/**
 * Makes what the processes of the table find: stores that hold something, settings, and a service that runs at `url`.
 *
 * @param plants the arguments that start the program
 * @returns the place; `nextId` gives an id that no plant has
 */
export function place({ folder, env, url, token, plants }) {
  const [command, ...first] = plants
  const call = (args, own = env, input = '') => {
    const { status, stderr } = spawnSync(command, [...first, ...args], { env: own, input })
    if (status !== 0) throw new Error(`plants ${args.join(' ')} ended with ${status}: ${stderr}`)
  }
  const settled = { ...env, PLANTS_CONFIG_DIR: join(folder, 'settled') }
  const [ten, foreign] = [join(folder, 'ten.db'), join(folder, 'foreign.db')]
  call(['create', '--id', '1', '--name', 'Fern']) // to be found, and refused
  call(['create', '--id', '1', '--name', 'Fern', '--store', foreign])
  const plantsOfTen = Array.from({ length: 10 }, (_, index) => `{"id":${index},"name":"Fern"}\n`)
  call(['import', '--store', ten], env, plantsOfTen.join(''))
  for (let number = 1; number < 20; number += 1)
    call(['stores', 'add', `store-${number}`, `https://${number}.example.com/v1`], settled)
  call(['stores', 'add', 'team', url], settled)
  call(['auth', 'login', '--store', 'team', '--with-token'], settled, token)
  let id = 1
  const nextId = () => {
    id += 1
    return String(id)
  }
  return { url, token, ten, foreign, nextId, settled, remote: { ...env, PLANTS_TOKEN: token } }
}
