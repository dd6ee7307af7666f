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
  const call = (args) => {
    const { status, stderr } = spawnSync(command, [...first, ...args], { env })
    if (status !== 0) throw new Error(`plants ${args.join(' ')} ended with ${status}: ${stderr}`)
  }
  const foreign = join(folder, 'foreign.db')
  call(['create', '--id', '1', '--name', 'Fern'])
  call(['create', '--id', '1', '--name', 'Fern', '--store', foreign])
  let id = 1
  const nextId = () => {
    id += 1
    return String(id)
  }
  return { url, token, foreign, nextId, remote: { ...env, PLANTS_TOKEN: token } }
}
