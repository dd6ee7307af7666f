import { expect, test } from 'vitest'
import { linesOf } from '../../helpers/redacting.js'
import { World } from '../../helpers/world.js'

// World.run itself fails when a secret is shown: each holds "s3cret", or is as long as a token of this program.

const ofProgram = `plants_${'s3cretXy'.repeat(5)}abc`

test.each(
  linesOf(`
    auth login T
    auth login --token T
    auth login --with-token=T
    auth login --store team --password=T
    auth token T
    create --id 1 --name x --token T
    --token T list
    -tT list
    list -H Authorization:T
    config set stores.team.token T
    config set token T
    config set tokens.https://h.example T
    config set timeout 1m T
    stores add new https://h.example T
    stores add new https://T@h.example
    stores add new https://h.example/?token=T
    stores add new https://h.example/#T
    stores use https://T@h.example
    stores init postgres://u:T@h/db
    serve --token T
    tokens create T
    PLANTS_TOKEN=T list
    list PGPASSWORD=T`),
)('a secret in an argument is rejected, and not repeated: %s', async (line) => {
  const settings = { version: 1, stores: { team: { address: 'https://h.example' } } }
  for (const secret of ['s3cretOfSomebody', ofProgram]) {
    const user = new World(settings)
    for (const output of ['text', 'json']) {
      const { code, out } = await user.run(`${line.replace(/(?<![A-Z_])T(?![A-Z])/, secret)} --output ${output}`)
      expect({ code, out }).toEqual({ code: 2, out: '' })
    }
    expect(user.saved).toEqual(settings)
  }
})

test.each(['list T', 'T', 'help T', 'list --timeout T', 'config get T', 'tokens revoke T'])(
  'a token of plants is repeated nowhere: %s',
  async (line) => {
    expect((await new World().run(line.replace('T', ofProgram))).code).not.toBe(0)
  },
)
