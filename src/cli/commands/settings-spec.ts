import { settingsIn } from '../../config/table.js'
import type { GlobalFlags } from '../flags.js'
import { type CommandSpec, command, type Flag, type FlagValues } from '../spec.js'

const setting = {
  term: '<setting>',
  meaning: `its name: ${settingsIn('user').join(', ')}; or of a store stores.NAME.SETTING. See: plants help environment`,
  values: 'setting',
} as const

const initFlags = [{ term: '--role <name>', meaning: 'the role that plants serve is to log in as' }] as const satisfies readonly Flag[]

export type InitFlags = GlobalFlags & FlagValues<typeof initFlags>

export const stores: CommandSpec = {
  name: 'stores',
  summary: 'give stores a name, and choose one',
  description: 'Save stores under a name, with what belongs to them. A name works wherever an address does.',
  examples: [
    'plants stores add garden ./garden.db',
    "plants stores add team https://plants.example.com/v1 --timeout 2m --token-command 'pass show plants'",
    'plants stores list',
  ],
  commands: [
    {
      name: 'add',
      description: 'Save a store under a name. --timeout, --ca-cert, --allow-http and --allow-async-commit are saved with it.',
      arguments: [
        { term: '<name>', meaning: 'letters, digits, "-" and "_"' },
        { term: '<address>', meaning: 'a path, http(s)://…, unix:PATH or postgres://…', values: 'file' },
      ],
      flags: [{ term: '--token-command <command>', meaning: 'take its token from what this command prints; no shell reads it' }],
      run: async ({ args: [name = '', address = ''], flags }, io) => (await import('./stores.js')).add(name, address, flags(), io),
    },
    command({
      name: 'init',
      description:
        'Make the store in a database, as somebody who may. With --role, let a role, which must be there, run a service on it: it may create and read, and change nothing else. What is there already stays.',
      arguments: [{ term: '<address>', meaning: "postgres://…, of an administrator or of the database's owner" }],
      flags: initFlags,
      run: async ({ args: [address = ''], flags }, io) => (await import('./stores.js')).init(address, flags(), io),
    }),
    {
      name: 'list',
      description: 'List the stores that have a name.',
      run: async ({ flags }, io) => (await import('./stores.js')).list(flags(), io),
    },
    {
      name: 'use',
      description: 'Choose the store of all commands that name none; "local" for the one at the beginning.',
      arguments: [{ term: '<store>', meaning: 'a saved name, or an address', values: 'store' }],
      run: async ({ args: [store = ''], flags }, io) => (await import('./stores.js')).use(store, flags(), io),
    },
    {
      name: 'remove',
      description: 'Forget a store and its saved token or password. Its plants stay where they are.',
      arguments: [{ term: '<name>', meaning: 'its name', values: 'saved-store' }],
      run: async ({ args: [name = ''], flags }, io) => (await import('./stores.js')).remove(name, flags(), io),
    },
  ],
}

const loginFlags = [{ term: '--with-token', meaning: 'read it from stdin' }] as const satisfies readonly Flag[]

export type LoginFlags = GlobalFlags & FlagValues<typeof loginFlags>

export const auth: CommandSpec = {
  name: 'auth',
  summary: 'save the token for a service, or the password for a database',
  description:
    'Manage the token for a service, or the password for a database. It is kept in your settings file, and sent to this address alone.',
  examples: [
    'plants auth login --store https://plants.example.com',
    'plants auth login --store https://plants.example.com --with-token < token.txt',
    'plants auth status --store https://plants.example.com',
  ],
  commands: [
    command({
      name: 'login',
      description: 'Save the token or the password for the store: asks for it, or reads it from stdin.',
      flags: loginFlags,
      run: async ({ flags }, io) => (await import('./auth.js')).login(flags(), io),
    }),
    {
      name: 'logout',
      description: 'Remove the token or the password for the store.',
      run: async ({ flags }, io) => (await import('./auth.js')).logout(flags(), io),
    },
    {
      name: 'status',
      description: 'Show where the token or the password of each store comes from, but not itself. Exit code 3 when there is none.',
      run: async ({ flags }, io) => (await import('./auth.js')).status(flags(), io),
    },
    {
      name: 'token',
      description: 'Print the token or the password for the store, for other programs.',
      run: async ({ flags }, io) => (await import('./auth.js')).printToken(flags(), io),
    },
  ],
}

export const config: CommandSpec = {
  name: 'config',
  summary: 'read and change the settings',
  description: 'Read and change the settings. Those of a store are called stores.NAME.SETTING.',
  examples: ['plants config set timeout 1m', 'plants config get timeout', 'plants config list'],
  commands: [
    {
      name: 'get',
      description: 'Print what a setting is, from wherever it has its value.',
      arguments: [setting],
      run: async ({ args: [name = ''], flags }, io) => (await import('./config.js')).get(name, flags(), io),
    },
    {
      name: 'set',
      description: 'Save a setting.',
      arguments: [setting, { term: '<value>', meaning: 'what it is to be', values: 'setting-value' }],
      run: async ({ args: [name = '', value = ''], flags }, io) => (await import('./config.js')).set(name, value, flags(), io),
    },
    {
      name: 'unset',
      description: 'Forget a saved setting, so that its default holds.',
      arguments: [setting],
      run: async ({ args: [name = ''], flags }, io) => (await import('./config.js')).unset(name, flags(), io),
    },
    {
      name: 'list',
      description: 'List the settings: what they are, where that came from, and what they mean.',
      run: async ({ flags }, io) => (await import('./config.js')).list(flags(), io),
    },
    {
      name: 'path',
      description: 'Print where the settings file is, or would be.',
      run: async ({ flags }, io) => (await import('./config.js')).path(flags(), io),
    },
  ],
}

export const doctor: CommandSpec = {
  name: 'doctor',
  summary: 'look for what is wrong',
  description: 'Look at the runtime, SQLite, the settings, each store, proxies and the terminal. Exit code 1 when something failed.',
  examples: ['plants doctor', 'plants doctor --output json'],
  run: async ({ flags }, io) => (await import('./doctor.js')).doctor(flags(), io),
}
