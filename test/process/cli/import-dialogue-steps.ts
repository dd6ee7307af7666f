import { Sandbox, toJsonResult } from '../../helpers/sandbox/sandbox.js'

// What the tests of the dialogue of an import type, and the lists that they import.

export const enter = '\r'
export const down = '\x1b[B'
export const up = '\x1b[A'
export const noColor = { NO_COLOR: '1' }

export const table =
  'Nr.;Botanischer Name;Standort\n31;Süßkirsche;Südbeet\n32;Gänseblümchen;Böschung\n'
export const columns: [string, string][] = [
  ['the name?', enter],
  ['the id?', enter],
  ['the tag?', enter],
]
export const storedPlants = toJsonResult(
  { id: 31, name: 'Süßkirsche', tag: 'Südbeet' },
  { id: 32, name: 'Gänseblümchen', tag: 'Böschung' },
)

export function createSandboxWithFile(content: string | Uint8Array, name = 'list.csv'): Sandbox {
  const user = new Sandbox()
  user.write(name, content)
  return user
}

export const latin1 = (text: string) => Buffer.from(text, 'latin1')
