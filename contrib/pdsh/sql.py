"""The 22 queries of TPC-H as SQL that polars reads: subqueries that refer outwards are written as joins.

Node half, standard library only. Meaning, parameters and columns as in ``frames``, which owes nothing to this
file: each is the other's oracle. Numbers are written without exponents, which polars before 2 can't read, and nothing
is counted by COUNT(DISTINCT), which cudf-polars 26.10 can't.
"""

import decimal
import re
from typing import Dict

CONSTANT = r"(?:'[^']*'|\d+)"
IN_LIST = re.compile(rf"(\w+(?:\([^()]*\))?) IN \(({CONSTANT}(?:, {CONSTANT})*)\)")
"""A column, or a function of one, and the constants that it is compared with."""
LIKE = re.compile(r"(\w+) (NOT )?LIKE '(%?)([^']*?)(%?)'")


def query(number: int, scale: float) -> str:
    """One of the 22 queries, for tables of this scale factor."""
    return SQL[number].replace("{fraction}", f"{decimal.Decimal(repr(0.0001 / scale)):f}")


def for_gpu(sql: str) -> str:
    """The same query without ``x IN (1, 2)`` and ``LIKE``.

    cudf-polars 26.10 supports neither. polars' SQL turns ``IN`` into a Series that holds one list, and ``LIKE`` into a
    regular expression with a flag.
    """

    def compared(found: "re.Match[str]") -> str:
        return "({})".format(" OR ".join(f"{found[1]} = {value}" for value in re.findall(CONSTANT, found[2])))

    def matched(found: "re.Match[str]") -> str:
        column, inverted, before, text, after = found.groups()
        if before and after:
            test = f"REGEXP_LIKE({column}, '{text.replace('%', '.*')}')"
        else:
            test = f"{'ENDS_WITH' if before else 'STARTS_WITH'}({column}, '{text}')"
        return f"{inverted or ''}{test}"

    return LIKE.sub(matched, IN_LIST.sub(compared, sql))


SQL: Dict[int, str] = {
    1: """
SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS sum_qty, SUM(l_extendedprice) AS sum_base_price,
       SUM(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
       SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
       AVG(l_quantity) AS avg_qty, AVG(l_extendedprice) AS avg_price, AVG(l_discount) AS avg_disc, COUNT(*) AS
       count_order
FROM lineitem WHERE l_shipdate <= DATE '1998-09-02'
GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus
""",
    2: """
WITH offer AS (
  SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment, ps_supplycost
  FROM part JOIN partsupp ON p_partkey = ps_partkey JOIN supplier ON ps_suppkey = s_suppkey
  JOIN nation ON s_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey
  WHERE p_size = 15 AND p_type LIKE '%BRASS' AND r_name = 'EUROPE'),
least AS (SELECT p_partkey AS partkey, MIN(ps_supplycost) AS cost FROM offer GROUP BY p_partkey)
SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
FROM offer JOIN least ON p_partkey = partkey AND ps_supplycost = cost
ORDER BY s_acctbal DESC, n_name, s_name, p_partkey LIMIT 100
""",
    3: """
SELECT l_orderkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON o_orderkey = l_orderkey
WHERE c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate LIMIT 10
""",
    4: """
WITH late AS (SELECT l_orderkey FROM lineitem WHERE l_commitdate < l_receiptdate)
SELECT o_orderpriority, COUNT(*) AS order_count FROM orders SEMI JOIN late ON o_orderkey = l_orderkey
WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01'
GROUP BY o_orderpriority ORDER BY o_orderpriority
""",
    5: """
SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON o_orderkey = l_orderkey
JOIN supplier ON l_suppkey = s_suppkey AND c_nationkey = s_nationkey
JOIN nation ON s_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey
WHERE r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
GROUP BY n_name ORDER BY revenue DESC
""",
    6: """
SELECT SUM(l_extendedprice * l_discount) AS revenue FROM lineitem
WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
AND l_discount > 0.045 AND l_discount < 0.075 AND l_quantity < 24
""",
    7: """
WITH supp AS (SELECT s_suppkey, n_name AS supp_nation FROM supplier JOIN nation ON s_nationkey = n_nationkey
  WHERE n_name IN ('FRANCE', 'GERMANY')),
cust AS (SELECT c_custkey, n_name AS cust_nation FROM customer JOIN nation ON c_nationkey = n_nationkey
  WHERE n_name IN ('FRANCE', 'GERMANY')),
shipping AS (
  SELECT supp_nation, cust_nation, EXTRACT(YEAR FROM l_shipdate) AS l_year, l_extendedprice * (1 - l_discount) AS volume
  FROM supp JOIN lineitem ON s_suppkey = l_suppkey JOIN orders ON l_orderkey = o_orderkey JOIN cust
  ON o_custkey = c_custkey
  WHERE supp_nation <> cust_nation AND l_shipdate >= DATE '1995-01-01' AND l_shipdate < DATE '1997-01-01')
SELECT supp_nation, cust_nation, l_year, SUM(volume) AS revenue FROM shipping
GROUP BY supp_nation, cust_nation, l_year ORDER BY supp_nation, cust_nation, l_year
""",
    8: """
WITH seller AS (SELECT s_suppkey, n_name AS nation FROM supplier JOIN nation ON s_nationkey = n_nationkey),
buyer AS (SELECT c_custkey FROM customer JOIN nation ON c_nationkey = n_nationkey JOIN region
ON n_regionkey = r_regionkey
  WHERE r_name = 'AMERICA'),
sale AS (
  SELECT EXTRACT(YEAR FROM o_orderdate) AS o_year, l_extendedprice * (1 - l_discount) AS volume, nation
  FROM part JOIN lineitem ON p_partkey = l_partkey JOIN orders ON l_orderkey = o_orderkey
  JOIN buyer ON o_custkey = c_custkey JOIN seller ON l_suppkey = s_suppkey
  WHERE p_type = 'ECONOMY ANODIZED STEEL' AND o_orderdate >= DATE '1995-01-01' AND o_orderdate < DATE '1997-01-01')
SELECT o_year, SUM(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0.0 END) / SUM(volume) AS mkt_share
FROM sale GROUP BY o_year ORDER BY o_year
""",
    9: """
WITH seller AS (SELECT s_suppkey, n_name AS nation FROM supplier JOIN nation ON s_nationkey = n_nationkey),
profit AS (
  SELECT nation, EXTRACT(YEAR FROM o_orderdate) AS o_year,
         l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount
  FROM part JOIN lineitem ON p_partkey = l_partkey
  JOIN partsupp ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey
  JOIN seller ON l_suppkey = s_suppkey JOIN orders ON l_orderkey = o_orderkey WHERE p_name LIKE '%green%')
SELECT nation, o_year, SUM(amount) AS sum_profit FROM profit GROUP BY nation, o_year ORDER BY nation, o_year DESC
""",
    10: """
SELECT c_custkey, c_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name, c_address, c_phone,
c_comment
FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON o_orderkey = l_orderkey
JOIN nation ON c_nationkey = n_nationkey
WHERE o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1994-01-01' AND l_returnflag = 'R'
GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment ORDER BY revenue DESC LIMIT 20
""",
    11: """
WITH stock AS (
  SELECT ps_partkey, ps_supplycost * ps_availqty AS amount
  FROM partsupp JOIN supplier ON ps_suppkey = s_suppkey JOIN nation ON s_nationkey = n_nationkey
  WHERE n_name = 'GERMANY'),
whole AS (SELECT SUM(amount) * {fraction} AS least FROM stock),
parts AS (SELECT ps_partkey, SUM(amount) AS value FROM stock GROUP BY ps_partkey)
SELECT ps_partkey, value FROM parts CROSS JOIN whole WHERE value > least ORDER BY value DESC
""",
    12: """
SELECT l_shipmode, SUM(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS high_line_count,
       SUM(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 0 ELSE 1 END) AS low_line_count
FROM orders JOIN lineitem ON o_orderkey = l_orderkey
WHERE l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01'
GROUP BY l_shipmode ORDER BY l_shipmode
""",
    13: """
WITH kept AS (SELECT o_orderkey, o_custkey FROM orders WHERE o_comment NOT LIKE '%special%requests%'),
per AS (SELECT c_custkey, COUNT(o_orderkey) AS c_count FROM customer LEFT JOIN kept ON c_custkey = o_custkey
GROUP BY c_custkey)
SELECT c_count, COUNT(*) AS custdist FROM per GROUP BY c_count ORDER BY custdist DESC, c_count DESC
""",
    14: """
SELECT 100.0 * SUM(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0.0 END)
       / SUM(l_extendedprice * (1 - l_discount)) AS promo_revenue
FROM lineitem JOIN part ON l_partkey = p_partkey
WHERE l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'
""",
    15: """
WITH revenue AS (
  SELECT l_suppkey, SUM(l_extendedprice * (1 - l_discount)) AS total_revenue FROM lineitem
  WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-04-01' GROUP BY l_suppkey),
best AS (SELECT MAX(total_revenue) * (1 - 0.000000001) AS least FROM revenue)
SELECT s_suppkey, s_name, s_address, s_phone, total_revenue
FROM supplier JOIN revenue ON s_suppkey = l_suppkey CROSS JOIN best WHERE total_revenue >= least ORDER BY s_suppkey
""",
    16: """
WITH complained AS (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%'),
offer AS (SELECT ps_partkey, ps_suppkey FROM partsupp ANTI JOIN complained ON ps_suppkey = s_suppkey),
supplied AS (
  SELECT DISTINCT p_brand, p_type, p_size, ps_suppkey FROM offer JOIN part ON ps_partkey = p_partkey
  WHERE p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%' AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9))
SELECT p_brand, p_type, p_size, COUNT(*) AS supplier_cnt FROM supplied
GROUP BY p_brand, p_type, p_size ORDER BY supplier_cnt DESC, p_brand, p_type, p_size
""",
    17: """
WITH sold AS (
  SELECT p_partkey, l_quantity, l_extendedprice FROM lineitem JOIN part ON l_partkey = p_partkey
  WHERE p_brand = 'Brand#23' AND p_container = 'MED BOX'),
mean AS (SELECT p_partkey AS partkey, 0.2 * AVG(l_quantity) AS few FROM sold GROUP BY p_partkey)
SELECT COALESCE(SUM(l_extendedprice), 0.0) / 7.0 AS avg_yearly FROM sold JOIN mean ON p_partkey = partkey
WHERE l_quantity < few
""",
    18: """
WITH large AS (SELECT l_orderkey, SUM(l_quantity) AS sum_quantity FROM lineitem GROUP BY l_orderkey
HAVING SUM(l_quantity) > 300)
SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum_quantity
FROM large JOIN orders ON l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey
ORDER BY o_totalprice DESC, o_orderdate LIMIT 100
""",
    19: """
SELECT COALESCE(SUM(l_extendedprice * (1 - l_discount)), 0.0) AS revenue FROM lineitem JOIN part
ON l_partkey = p_partkey
WHERE l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON' AND p_size >= 1 AND (
  (p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
   AND l_quantity >= 1 AND l_quantity <= 11 AND p_size <= 5)
  OR (p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
   AND l_quantity >= 10 AND l_quantity <= 20 AND p_size <= 10)
  OR (p_brand = 'Brand#34' AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
   AND l_quantity >= 20 AND l_quantity <= 30 AND p_size <= 15))
""",
    20: """
WITH sold AS (
  SELECT l_partkey, l_suppkey, 0.5 * SUM(l_quantity) AS half FROM lineitem JOIN part ON l_partkey = p_partkey
  WHERE p_name LIKE 'forest%' AND l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
  GROUP BY l_partkey, l_suppkey),
stock AS (
  SELECT ps_suppkey FROM partsupp JOIN sold ON ps_partkey = l_partkey AND ps_suppkey = l_suppkey
  WHERE ps_availqty > half)
SELECT s_name, s_address FROM supplier JOIN nation ON s_nationkey = n_nationkey SEMI JOIN stock
ON s_suppkey = ps_suppkey
WHERE n_name = 'CANADA' ORDER BY s_name
""",
    21: """
WITH late AS (SELECT l_orderkey, l_suppkey FROM lineitem WHERE l_receiptdate > l_commitdate),
several AS (
  SELECT l_orderkey AS several_key FROM lineitem GROUP BY l_orderkey HAVING MIN(l_suppkey) < MAX(l_suppkey)),
alone AS (SELECT l_orderkey AS alone_key FROM late GROUP BY l_orderkey HAVING MIN(l_suppkey) = MAX(l_suppkey))
SELECT s_name, COUNT(*) AS numwait
FROM late JOIN orders ON l_orderkey = o_orderkey JOIN several ON l_orderkey = several_key JOIN alone
ON l_orderkey = alone_key
JOIN supplier ON l_suppkey = s_suppkey JOIN nation ON s_nationkey = n_nationkey
WHERE o_orderstatus = 'F' AND n_name = 'SAUDI ARABIA' GROUP BY s_name ORDER BY numwait DESC, s_name LIMIT 100
""",
    22: """
WITH people AS (
  SELECT SUBSTR(c_phone, 1, 2) AS cntrycode, c_acctbal, c_custkey FROM customer
  WHERE SUBSTR(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17')),
mean AS (SELECT AVG(c_acctbal) AS mean_acctbal FROM people WHERE c_acctbal > 0),
idle AS (SELECT cntrycode, c_acctbal FROM people ANTI JOIN orders ON c_custkey = o_custkey)
SELECT cntrycode, COUNT(*) AS numcust, SUM(c_acctbal) AS totacctbal FROM idle CROSS JOIN mean
WHERE c_acctbal > mean_acctbal
GROUP BY cntrycode ORDER BY cntrycode
""",
}
