import type { SettingSource } from '../config/resolve.js'
import type { SettingName, SettingValue } from '../config/setting-table.js'
import type { SettingsFile } from '../config/settings-file.js'
import type { OutputStyle } from '../output/output.js'
import type { Address } from '../stores/common/address.js'
import type { OpenOptions } from '../stores/common/store.js'

/** What every command works with. */
export interface Preferences extends OutputStyle {
  /** milliseconds to wait for a store, and for another process that changes the settings */
  timeout: number
  isVerbose: boolean
  showsProgress: boolean
  mayAsk(): boolean
  warn(text: string, label?: 'warning'): Promise<void>
  file: SettingsFile
  /** the saved name of the store, if it was named by it */
  storeName: string | undefined
  /** false for a store other than that of this run: PLANTS_TOKEN and PGPASSWORD are not for it */
  isOfRun: boolean
  /** where the value of a setting is from */
  source(name: SettingName): SettingSource
  /** @throws {PlantsError} `malformed` for an invalid value */
  value<Name extends SettingName>(name: Name): SettingValue<Name> | undefined
}

export interface Settings extends Preferences {
  store: Address
  /** for the command of a hint, such as " --store ./garden.db"; empty if it needs no option */
  storeFlag: string
  storeOptions: OpenOptions
}
