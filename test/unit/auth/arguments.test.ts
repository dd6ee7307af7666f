import { expect, test } from 'vitest'
import { World } from '../../helpers/world.js'

// runPlants itself fails when a secret is shown: each holds "s3cret", or is as long as a token of this program.

const secrets = ['s3cretOfSomebody', `plants_${'s3cretXy'.repeat(5)}abc`]

test.each([
  'auth login T',
  'auth login --store team T',
  'auth login --token T',
  'auth login --token=T',
  'auth login --with-token T',
  'auth login --with-token=T',
  'auth login --store team --password=T',
  'auth token T',
  'auth logout T',
  'create --id 1 --name x --token T',
  '--token T list',
  '--token=T list',
  '-tT list',
  'list --bearer=T',
  'list --tokn=T',
  'list -H Authorization:T',
  'config set stores.team.token T',
  'config set stores.team.token=T',
  'config set token T',
  'config set tokens.https://h.example T',
  'config set timeout 1m T',
  'stores add new https://h.example T',
  'stores add new https://h.example --token=T',
  'stores add new https://T@h.example',
  'stores add new https://h.example/?token=T',
  'stores add new https://h.example/#T',
  'stores use https://T@h.example',
  'stores init postgres://u:T@h/db',
  'serve --token T',
  'tokens create T',
  'tokens create --token=T',
  'PLANTS_TOKEN=T list',
  'list PGPASSWORD=T',
])('a secret in an argument is refused, and not repeated: %s', async (line) => {
  for (const secret of secrets) {
    const user = new World()
    user.save({ stores: { team: { address: 'https://h.example' } } })
    for (const output of ['text', 'json']) {
      const { code, out } = await user.run(`${line.replace(/(?<![A-Z_])T(?![A-Z])/, secret)} --output ${output}`)
      expect({ code, out }).toEqual({ code: 2, out: '' })
    }
    expect(user.saved).toEqual({ version: 1, stores: { team: { address: 'https://h.example' } } })
  }
})

test.each(['list T', 'T', 'help T', 'list --timeout T', 'config get T', 'tokens revoke T'])(
  'a token of plants is not repeated anywhere: %s',
  async (line) => {
    const { code } = await new World().run(line.replace('T', secrets[1] ?? ''))
    expect(code).not.toBe(0)
  },
)
