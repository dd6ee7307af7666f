import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

/**
 * Makes the stores that the processes of the table find.
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
  const [ten, foreign] = [join(folder, 'ten.db'), join(folder, 'foreign.db')]
  call(['create', '--id', '1', '--name', 'Fern'])
  call(['create', '--id', '1', '--name', 'Fern', '--store', foreign])
  const plantsOfTen = Array.from({ length: 10 }, (_, index) => `{"id":${index},"name":"Fern"}\n`)
  call(['import', '--store', ten], env, plantsOfTen.join(''))
  let id = 1
  const nextId = () => {
    id += 1
    return String(id)
  }
  return { url, token, ten, foreign, nextId, remote: { ...env, PLANTS_TOKEN: token } }
}
